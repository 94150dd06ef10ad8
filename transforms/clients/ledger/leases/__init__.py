"""Leases of a ledger: two concurrent runs neither pay for the same calls nor exceed a quota together.

Leases apply to runs that share a ledger; runs with different ledgers do not see each other.
"""

from rankbeam.transforms.clients.ledger.leases.lease import BEAT_S, Holder, Lease, LeaseLost, LeasePlace, ReadFile
from rankbeam.transforms.clients.storage import files

__all__ = ["BEAT_S", "FOLDER", "Holder", "Lease", "LeaseLost", "LeasePlace", "ReadFile", "place_of"]

FOLDER = "leases"


def place_of(ledger: str) -> LeasePlace:
    from rankbeam.transforms.clients.ledger.leases.elsewhere import ElsewherePlace, GcsPlace
    from rankbeam.transforms.clients.ledger.leases.local import LocalPlace

    folder = files.join(ledger, FOLDER)
    if files.is_local(folder):
        return LocalPlace(folder)
    return GcsPlace(folder) if folder.startswith("gs://") else ElsewherePlace(folder)
