"""Compare configurations of finished runs."""
