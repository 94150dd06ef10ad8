"""Labelling: draw a blinded sample of a run's queries, write tasks for people, and read their decisions."""
