"""Calls to remote services: what is asked, out of which budget, and what came back."""
