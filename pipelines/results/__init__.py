"""What finished runs say, read back from their tables."""
