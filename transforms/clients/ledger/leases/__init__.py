"""Leases of a ledger: two concurrent runs neither pay for the same calls nor exceed a quota together.

Leases apply to runs that share a ledger; runs with different ledgers do not see each other.
"""

from rankbeam.transforms.clients.ledger.leases.lease import BEAT_S, Holder, Lease, LeaseLost, LeasePlace, ReadFile
from rankbeam.transforms.clients.ledger.leases.places import FOLDER, place_of

__all__ = ["BEAT_S", "FOLDER", "Holder", "Lease", "LeaseLost", "LeasePlace", "ReadFile", "place_of"]
