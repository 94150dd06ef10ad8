"""Output of `rankbeam init`: a first experiment for files that are there, from a template, or the example."""
