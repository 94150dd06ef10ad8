"""Files on any filesystem, and what is spilled to them."""
