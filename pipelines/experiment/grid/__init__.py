"""The grid: turns the file's configurations and swept parameters into systems under test."""
