"""The experiment: one YAML file that names a dataset, configurations, metrics and an output."""
