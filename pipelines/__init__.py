"""Floor 4: the experiment, the pipeline built from it, and the command line."""
