"""BigQuery, for reading datasets and for keeping results."""
