"""Gates: limits that the results of a run must keep."""
