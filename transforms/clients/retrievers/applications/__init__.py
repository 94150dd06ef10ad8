"""Deployed applications: one call returns the answer to a query and the contexts that the answer is based on."""
