"""Changes of quality, night after night."""
