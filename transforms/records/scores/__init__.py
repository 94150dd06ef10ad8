"""Scores of queries, and what is combined from them."""
