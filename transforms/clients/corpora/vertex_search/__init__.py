"""Documents of data stores of Vertex AI Search, and their chunks, over gRPC."""
