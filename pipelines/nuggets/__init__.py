"""Nuggets for a collection that has none: facts that good answers need, from all configurations' contexts."""
