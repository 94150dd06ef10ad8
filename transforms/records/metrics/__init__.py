"""Names of metrics, and the dialects of other tools."""
