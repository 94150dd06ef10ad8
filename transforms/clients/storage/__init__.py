"""Files on any filesystem, and batches spilled to them."""
