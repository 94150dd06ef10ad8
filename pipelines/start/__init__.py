"""What `rankbeam init` writes: a first experiment for files that are there, from a template, or the example."""
