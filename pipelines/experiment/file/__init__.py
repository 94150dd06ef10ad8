"""The experiment file: its keys, their models and their checks."""
