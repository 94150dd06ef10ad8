"""Public test collections by name: fetched once, and kept in a folder of this machine."""
