"""Corpora of Vertex AI RAG Engine: staged on Cloud Storage, built over gRPC, verified, found again, and deleted."""
