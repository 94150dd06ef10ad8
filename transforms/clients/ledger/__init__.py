"""The ledger of finished calls: part files in a folder, so that no call that was answered once is paid for again.

Any number of runs and processes may share a ledger. Nobody locks it: a part never changes, and one that is merged into
another one disappears only after that is there.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

from transforms.clients.ledger import store
from transforms.clients.ledger.index import Index
from transforms.clients.ledger.parts import Entry
from transforms.clients.ledger.survey import Cleared, RunUse, Survey, clear, survey
from transforms.clients.ledger.writer import LedgerWriter
from transforms.records.calls import Reach
from transforms.records.errors import InputError

__all__ = ["Cleared", "Entry", "Ledger", "LedgerWriter", "RunUse", "Survey", "clear", "survey"]

_ROUNDS = 20


class Ledger:
    """The finished calls of a folder.

    Args:
        folder: on any of Beam's filesystems; it need not exist.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find(self, wanted: Mapping[str, Reach]) -> Iterator[Entry]:
        """Find answers of earlier calls.

        Args:
            wanted: for each key how far into a ranking the answer has to go.

        Yields:
            For each key at most one entry, whose reach covers the wanted one: of several the newest. Parts that cannot
            be used are left out, with a warning.

        Raises:
            InputError: the folder cannot be looked up.
        """
        left = dict(wanted)
        index = Index(self.folder)
        for _ in range(_ROUNDS):  # again when a merge moves an answer, or a damaged one has an older copy
            hits = index.hits(left)
            for entry in index.read(hits, left):
                del left[entry.key]
                yield entry
            if index.is_settled():
                return

    def held(self, wanted: Mapping[str, Reach]) -> int:
        """How many entries `find` would yield, without reading an answer."""
        index = Index(self.folder)
        for _ in range(_ROUNDS):
            count = len(index.hits(wanted))
            if index.is_settled():
                break
        return count

    def writer(self) -> LedgerWriter:
        """Something to add finished calls with."""
        return LedgerWriter(self.folder)

    def record_use(self, run_id: str, hits: int, calls: int) -> None:
        """Note how a run used the ledger, for people to see; it does not matter if that fails.

        Args:
            run_id: the run.
            hits: answers that it found.
            calls: that it made and added.
        """
        if not hits and not calls:
            return  # and leaves no folder behind
        use = {"run_id": run_id, "hits": hits, "calls": calls, "at": datetime.now(UTC).isoformat()}
        with suppress(InputError):
            store.put_use(self.folder, json.dumps(use).encode())
