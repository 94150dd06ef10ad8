"""Kernels of rankings: orders, pools, hits, metrics, bounds under ties, fusion."""
