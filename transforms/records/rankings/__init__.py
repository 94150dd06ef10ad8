"""Rankings of many queries at once, as Arrow batches."""
