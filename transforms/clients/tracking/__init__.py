"""Experiment trackers that the results of finished runs are copied to."""
