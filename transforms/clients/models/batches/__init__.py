"""Batch jobs of models: many calls in one file, at half price, answered within a day."""
