"""Writes finished calls to a ledger within seconds, in a thread of its own, and keeps its files few."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock
from rankbeam.transforms.clients.ledger import merging, store
from rankbeam.transforms.clients.ledger.journal import Journal
from rankbeam.transforms.clients.ledger.parts import encode_entries
from rankbeam.transforms.clients.ledger.rows import LedgerEntry
from rankbeam.transforms.clients.storage import files, spill
from rankbeam.transforms.clients.storage.whole_files import StoredFile
from rankbeam.transforms.records.errors import InputError

PIECE_BYTES = 32 << 20  # approximate bytes of answers in one part; this many are written at once


class PendingEntries:
    """Entries in the order in which they were added. The caller holds the lock."""

    def __init__(self, flush_s: float, clock: Callable[[], float]) -> None:
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

        After a failed write, the next try waits, no matter how many entries there are.
        """
        is_late = self._due is not None and self._clock() >= self._due
        return bool(self._entries) and (is_late or (self._bytes >= PIECE_BYTES and not self._has_failed))

    def wait_s(self) -> float | None:
        """Seconds until entries are due; None if there are no entries."""
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
        self._has_failed = False

    def put_back(self, piece: list[LedgerEntry]) -> None:
        self._entries.extendleft(reversed(piece))
        self._bytes += sum(len(entry.answer) for entry in piece)
        self._due = self._clock() + self._flush_s
        self._has_failed = True


_DONE = object()
_LOCAL_FLUSH_S, _FLUSH_S = 0.2, 0.5
"""Writing a part takes 3 ms of processor time and, on remote filesystems, a billed request. A killed process loses the
answers of the last interval there; on this machine, they are in the journal."""


class LedgerWriter:
    """Adds finished calls to a ledger. Any thread may add them, without waiting for the disk.

    After a failed write, entries are kept and written with the next try.
    """

    def __init__(
        self,
        folder: str,
        flush_s: float | None = None,
        before_part: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._folder, self._before_part, self._clock = folder, before_part, clock
        self._changed = clock.condition()
        is_local = files.is_local(folder)
        if flush_s is None:
            flush_s = _LOCAL_FLUSH_S if is_local else _FLUSH_S
        self._pending = PendingEntries(flush_s, clock.monotonic)
        self._added = self._durable = 0
        self._hurried = self._closing = False
        self._failures = 0
        self.problem: InputError | None = None  # the error of the last write; None if it succeeded
        self._thread: threading.Thread | None = None
        self._merging = _PartMerger(folder)
        self._journal = Journal(folder) if is_local else None

    def add(self, entry: LedgerEntry) -> None:
        """Add an entry; it is on the filesystem some seconds later, unless there is a `problem`."""
        with self._changed:
            if self._closing:
                raise RuntimeError("the ledger's writer is closed")
            self._added += 1
            if self._journal is not None:
                self._journal.add(entry)
            if self._pending.add(entry):
                if self._thread is None:
                    self._thread = self._clock.start(self._work, "rankbeam-ledger")
                self._changed.notify_all()

    def count_in_flight(self, change: int) -> None:
        """Note that a call begins (1) or has ended (-1): the number of a killed process is left for the next one."""
        if self._journal is not None:
            self._journal.count_in_flight(change)

    @property
    def unwritten(self) -> int:
        return self._added - self._durable

    def flush(self) -> None:
        """Write all entries added so far; on return, they are on the filesystem."""
        with self._changed:
            self._wait_until_written()

    def close(self) -> None:
        """Write the remaining entries, merge small parts, and end the thread. Closing again does nothing."""
        with self._changed:
            if self._closing:
                return
            try:
                while self._durable < self._added:
                    self._wait_until_written()
            finally:
                self._closing = True
                self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._journal is not None:
            self._journal.close()

    def _wait_until_written(self) -> None:
        number, failures = self._added, self._failures
        self._hurried = number > self._durable
        self._changed.notify_all()
        self._changed.wait_for(lambda: self._durable >= number or self._failures > failures or self._closing)
        if self._durable < number and self.problem is not None:
            raise self.problem

    def _work(self) -> None:
        while self._wait():
            self._write_pending()
        self._merging.at_end()

    def _wait(self) -> bool:
        """Wait until there is something to write, merging meanwhile; returns whether to go on."""
        while True:
            with self._changed:
                if self._closing:
                    return False
                if self._pending and (self._hurried or self._pending.is_due()):
                    return True
                if not self._merging.is_wanted():
                    self._changed.wait(self._pending.wait_s())
                    continue
            self._merging.step()

    def _write_pending(self) -> None:
        with self._changed:
            piece = self._pending.take()
            journal = None if self._pending else self._journal
            if journal is not None:
                journal.end_file()
        self._before_part()
        try:
            part = store.put(self._folder, encode_entries(piece))
        except Exception as error:  # storage clients raise errors of any class; callers of `add` read them as `problem`
            self._put_back(piece, error)
            return
        self._merging.add(part)
        with self._changed:
            self._durable += len(piece)
            self.problem = None
            if journal is not None:
                journal.delete_ended()
            self._pending.written()
            self._hurried = self._hurried and bool(self._pending)
            self._changed.notify_all()

    def _put_back(self, piece: list[LedgerEntry], error: Exception) -> None:
        problem = error if isinstance(error, InputError) else InputError(f"cannot be written: {error}")
        message = (
            f"the ledger of finished calls {problem.problem}; free disk space or grant write access, and run it again"
        )
        with self._changed:
            self._pending.put_back(piece)
            self.problem = InputError(message, path=self._folder)
            self.problem.__cause__ = error
            self._failures += 1
            self._hurried = False
            self._changed.notify_all()


class _PartMerger:
    """Merges the small parts of one writer, step by step, so that new entries never wait for long.

    The number of parts below each tier's size is bounded, and larger parts are left alone, so a job of any length has
    few parts.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._parts: list[StoredFile] = []
        self._merge: Iterator[None] | None = None

    def add(self, part: StoredFile) -> None:
        self._parts.append(part)

    def is_wanted(self) -> bool:
        if self._merge is None and (chosen := merging.due(self._parts)):
            self._merge = self._merge_parts(chosen)
        return self._merge is not None

    def step(self) -> None:
        """Do a step of the merge, of at most one row group or one part."""
        if self._merge is not None and next(self._merge, _DONE) is _DONE:
            self._merge = None

    def at_end(self) -> None:
        """Finish the merge in progress and merge all small parts; then those of other runs, if there are many."""
        merging.run_to_end(self._merge or ())
        chosen = merging.fitting_parts([part for part in self._parts if part.bytes < merging.TIERS[-1]])
        if len(chosen) > 1:
            merging.run_to_end(self._merge_parts(chosen))
        merging.tidy(self._folder)

    def _merge_parts(self, chosen: list[StoredFile]) -> Iterator[None]:
        # Parts that cannot be merged stay as they are, and are not tried again.
        self._parts = [part for part in self._parts if part not in chosen]
        with suppress(InputError):  # for example a full disk, which the next `add` reports if it persists
            path = yield from merging.merge(self._folder, chosen)
            self._parts += [] if path is None else [path]
        spill.release_unused_memory()  # of the merge and of calls: 100 MB after ten thousand calls or so
