"""Build and run the pipeline of an experiment."""
