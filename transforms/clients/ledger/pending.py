"""Finished calls that wait to be written: when they are due, and how many go into one part."""

import time
from collections import deque
from collections.abc import Callable

from rankbeam.transforms.clients.ledger.rows import LedgerEntry

PIECE_BYTES = 32 << 20
"""Approximate bytes of answers in one part; that much is written at once."""


class Pending:
    """Entries in the order in which they were added. The caller holds a lock."""

    def __init__(self, flush_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._flush_s, self._clock = flush_s, clock
        self._entries: deque[LedgerEntry] = deque()
        self._bytes = 0
        self._due: float | None = None
        self._has_failed = False

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: LedgerEntry) -> bool:
        """Add an entry; returns whether a waiting writer must check again."""
        self._entries.append(entry)
        self._bytes += len(entry.answer)
        is_first = self._due is None
        if is_first:
            self._due = self._clock() + self._flush_s
        return is_first or self._bytes >= PIECE_BYTES

    def is_due(self) -> bool:
        """Return whether it is time to write: the oldest entry has waited long enough, or a part is full.

        After a failed write, the next try waits, however many entries there are.
        """
        is_late = self._due is not None and self._clock() >= self._due
        return bool(self._entries) and (is_late or (self._bytes >= PIECE_BYTES and not self._has_failed))

    def wait_s(self) -> float | None:
        """Seconds until entries are due; None until an entry is added."""
        return None if self._due is None else max(0.0, self._due - self._clock())

    def take(self) -> list[LedgerEntry]:
        """Take the oldest entries, as many as go into one part; the remaining ones are due."""
        piece: list[LedgerEntry] = []
        size = 0
        while self._entries and size < PIECE_BYTES:
            piece.append(self._entries.popleft())
            size += len(piece[-1].answer)
        self._bytes -= size
        self._due = self._clock() if self._entries else None  # the remaining entries have waited long enough
        return piece

    def written(self) -> None:
        """Note that the taken entries are on the filesystem."""
        self._has_failed = False

    def put_back(self, piece: list[LedgerEntry]) -> None:
        """Return taken entries that could not be written."""
        self._entries.extendleft(reversed(piece))
        self._bytes += sum(len(entry.answer) for entry in piece)
        self._due = self._clock() + self._flush_s
        self._has_failed = True
