"""Get rankings from retrievers, in process or by calls."""
