"""Kernels of rankings: orders, judgements that are hit, metrics, the reach of ties, fusion."""
