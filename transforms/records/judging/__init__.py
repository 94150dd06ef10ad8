"""Judging: answers and contexts of queries, the steps of the judge, and their values."""
