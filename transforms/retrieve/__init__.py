"""Rankings from retrievers: in process, or by calls."""
