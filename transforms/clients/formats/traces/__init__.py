"""Production traces: spans of OpenTelemetry (GenAI, OpenInference), Phoenix and Langfuse, and turns made of them."""
