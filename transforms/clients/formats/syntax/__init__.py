"""The syntax of files: lines, JSON lines, separated values and tables, and the ids and columns in them."""
