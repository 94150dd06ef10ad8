"""How many queries show a difference."""
