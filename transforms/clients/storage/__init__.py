"""Files on any filesystem, and batches that are spilled to files."""
