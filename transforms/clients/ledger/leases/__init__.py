"""Leases of a ledger: two concurrent runs neither pay for the same calls nor exceed a quota together.

Leases apply to runs that share a ledger; runs with different ledgers do not see each other.
"""
