"""Read YAML files that users write: values with their lines, and errors that name the line."""
