"""Scores of queries, and the statistics combined from them."""
