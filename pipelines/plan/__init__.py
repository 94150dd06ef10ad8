"""Cost forecast of an experiment: its calls, enumerated without making any."""
