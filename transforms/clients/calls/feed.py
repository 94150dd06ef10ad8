"""The tasks of a lane on their way from the bundle's thread, the only one that may read them, to the event loop."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from rankbeam.transforms.clients.calls.recall import Recall
from rankbeam.transforms.clients.calls.task_batches import Group, group_of
from rankbeam.transforms.clients.ledger import Lookup
from rankbeam.transforms.records.calls.steps import RecalledTasks

_AT_ONCE, _BYTES_AT_ONCE = 128, 1 << 20
_MOST_READY = 512


class Feed:
    """A bounded queue of rows of tasks; a row becomes a group of tasks when it is taken."""

    def __init__(self, rows: Iterable[bytes], number: int = 0, recall: Recall | None = None) -> None:
        self._rows: Iterator[bytes] = iter(rows)
        self._number, self._taken = number, 0
        self.recall = recall or Recall({}, tuple)
        self._read_bytes = self._taken_bytes = 0  # only one thread changes each of them
        self._ready: deque[bytes] = deque()
        self._is_read = False
        self._on_filled: Callable[[], object] = lambda: None
        self._on_taken: Callable[[], object] = lambda: None

    def connect(self, on_filled: Callable[[], object], on_taken: Callable[[], object]) -> None:
        self._on_filled, self._on_taken = on_filled, on_taken

    @property
    def has_ended(self) -> bool:
        return self._is_read and not self._ready

    @property
    def left(self) -> int:
        """Number of groups that have been neither taken nor recalled yet."""
        return 0 if self.has_ended else max(0, self._number - self._taken - self.recall.counted.total())

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows that were read but not taken."""
        return self._read_bytes - self._taken_bytes

    def fill(self, most_bytes: int) -> bool:
        """Read some rows, if there is room for them; returns whether there was."""
        if self._is_read or len(self._ready) >= _MOST_READY or self.held_bytes >= most_bytes:
            return False
        before, end = self._read_bytes, self._read_bytes + _BYTES_AT_ONCE
        for _ in range(_AT_ONCE):
            row = next(self._rows, None) or self.recall.rejected()
            if row is None:
                self._is_read = self.recall.has_ended
                break
            self._read_bytes += len(row)
            self._ready.append(row)
            if self._read_bytes >= end:
                break
        if self._read_bytes == before and not self._is_read:
            return False
        self._on_filled()
        return True

    def look_up(self, lookup: Lookup) -> None:
        self._number += self.recall.look_up(lookup)

    def read_recalled(self) -> RecalledTasks | None:
        """Tasks that the ledger answers, which need not be taken; None if there are no more."""
        if self.recall.has_ended:
            return None
        recalled = self.recall.read()
        self._on_filled()
        return recalled

    def take(self, has_room: Callable[[], bool]) -> Iterator[tuple[Group, int]]:
        """Take some groups one by one while there is room, each with the bytes of its row."""
        before, end = self._taken, self._taken_bytes + _BYTES_AT_ONCE
        while self._ready and self._taken - before < _AT_ONCE and self._taken_bytes < end and has_room():
            row = self._ready.popleft()
            self._taken += 1
            self._taken_bytes += len(row)
            yield group_of(row), len(row)
        if self._taken > before and not self._is_read:
            self._on_taken()
