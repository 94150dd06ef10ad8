"""Traces of production as a dataset: questions, answers, and an experiment that judges them."""
