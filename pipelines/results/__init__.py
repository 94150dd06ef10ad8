"""Results of finished runs, read from their tables."""
