"""Kernels of statistics: exact sums, intervals, tests, corrections, the best of many."""
