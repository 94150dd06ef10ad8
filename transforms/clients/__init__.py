"""Floor 2: the outside world behind small Protocols."""
