"""Numbers of queries that show a difference."""
