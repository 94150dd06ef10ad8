"""Output of `rankbeam init`: a first experiment for existing files, from a template, or an example."""
