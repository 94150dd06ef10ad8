"""The local warehouse: a DuckDB file, and the views that it shares with BigQuery."""
