"""Calls that failed in a run that gave their service up: the next run makes the remaining calls first.

Otherwise the same calls would fail first in every run, and those behind them would never be made.
"""

import hashlib
import json
from collections.abc import Collection

from rankbeam.transforms.clients.ledger import store
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

_MOST = 10_000


def read(folder: str, pool: str, lane: int) -> frozenset[str]:
    """The keys that were kept for a lane; none if they cannot be read, as they only decide an order."""
    try:
        with files.open_raw(files.join(folder, store.USES, _name(pool, lane))) as handle:
            keys = json.loads(handle.read())
    except (InputError, OSError, ValueError):
        return frozenset()
    return frozenset(key for key in keys if isinstance(key, str)) if isinstance(keys, list) else frozenset()


def keep(folder: str, pool: str, lane: int, keys: Collection[str]) -> None:
    """Keep the keys of a lane, instead of those that were kept before."""
    store.put_use(folder, _name(pool, lane), json.dumps(sorted(keys)[:_MOST]).encode())


def _name(pool: str, lane: int) -> str:
    return f"tried-{hashlib.sha256(f'{pool} {lane}'.encode()).hexdigest()[:32]}.json"
