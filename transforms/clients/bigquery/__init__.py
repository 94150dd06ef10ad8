"""BigQuery, for reading datasets and for storing results."""
