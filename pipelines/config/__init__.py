"""YAML files that people write: where everything stands in them, and what is wrong with it."""
