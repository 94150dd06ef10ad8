"""Leases beside a ledger, so that two runs at once neither pay for the same calls nor go over a quota together.

They bind the runs of one ledger: runs with different ledgers know nothing of each other.
"""

from rankbeam.transforms.clients.ledger.leases.lease import BEAT_S, Holder, Lease, LeaseLost
from rankbeam.transforms.clients.ledger.leases.place import Place, Seen, place_of

__all__ = ["BEAT_S", "Holder", "Lease", "LeaseLost", "Place", "Seen", "place_of"]
