"""Deployed applications: one call answers a query and says the contexts that the answer rests on."""
