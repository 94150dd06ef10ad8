"""The grid: from the file's configurations and swept parameters to systems under test."""
