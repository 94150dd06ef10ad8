"""Calls to remote services: requests, the budgets that pay for them, and replies."""
