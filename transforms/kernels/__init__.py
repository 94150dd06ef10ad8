"""Floor 0: numbers in, numbers out. NumPy and pyarrow only; no files, no Beam, no clock."""
