"""Writes finished calls to a ledger within seconds, in a thread of its own, and keeps its files few."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from transforms.clients.ledger import parts, store
from transforms.clients.ledger.parts import Encoder, Entry, PartError, PartReader
from transforms.clients.ledger.store import Stored
from transforms.records.errors import InputError

_PIECE_BYTES = 32 << 20
_PART_BYTES = 64 << 20
_TIERS = (1 << 20, 16 << 20)
_MANY = 32
_DONE = object()


class LedgerWriter:
    """Adds finished calls to a ledger. Any thread may add; none waits for the disk.

    Args:
        folder: of the ledger; it is made with the first part.
        flush_s: after which an added entry is written, in seconds.
    """

    def __init__(self, folder: str, flush_s: float = 0.5) -> None:
        self._folder, self._flush_s = folder, flush_s
        self._changed = threading.Condition()
        self._pending: deque[Entry] = deque()
        self._pending_bytes = 0
        self._added = self._durable = 0
        self._due: float | None = None
        self._hurried = self._closing = False
        self._failures = 0
        self._error: InputError | None = None
        self._thread: threading.Thread | None = None
        self._merging = _Merging(folder)

    def add(self, entry: Entry) -> None:
        """Take an entry; it is on the filesystem some seconds later.

        Raises:
            InputError: an earlier entry could not be written. This one is kept all the same, and written when that
                works again, at the latest on `close`.
        """
        with self._changed:
            if self._closing:
                raise RuntimeError("the ledger's writer is closed")
            self._pending.append(entry)
            self._pending_bytes += len(entry.answer)
            self._added += 1
            if self._due is None or self._pending_bytes >= _PIECE_BYTES:
                self._due = self._due or time.monotonic() + self._flush_s
                self._start()
                self._changed.notify_all()
            if self._error is not None:
                raise self._error

    def flush(self) -> None:
        """Write everything that was added so far; it is on the filesystem on return.

        Raises:
            InputError: it cannot be written.
        """
        with self._changed:
            self._wait_until_written()

    def close(self) -> None:
        """Write what is left, merge small parts, and end the thread. Closing again does nothing.

        Raises:
            InputError: something cannot be written.
        """
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

    def _wait_until_written(self) -> None:
        wanted, failures = self._added, self._failures
        self._hurried = wanted > self._durable
        self._changed.notify_all()
        self._changed.wait_for(lambda: self._durable >= wanted or self._failures > failures)
        if self._durable < wanted and self._error is not None:
            raise self._error

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="rankbeam-ledger", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while self._wait():
            self._write_pending()
        for _ in self._merging.at_end():
            pass

    def _wait(self) -> bool:
        """Wait until there is something to write, and merge meanwhile; returns whether to go on."""
        while True:
            with self._changed:
                if self._is_due():
                    return True
                if self._closing:
                    return False
                if not self._merging.is_wanted():
                    left = None if self._due is None else max(0.0, self._due - time.monotonic())
                    self._changed.wait(left)
                    continue
            self._merging.step()

    def _is_due(self) -> bool:
        late = self._due is not None and time.monotonic() >= self._due
        return bool(self._pending) and not self._closing and (late or self._is_large() or self._hurried)

    def _is_large(self) -> bool:
        return self._pending_bytes >= _PIECE_BYTES and self._error is None

    def _write_pending(self) -> None:
        piece = self._taken()
        try:
            part = store.put(self._folder, _encoded(piece))
        except Exception as error:  # a storage client's own errors are of any class, and whoever adds must learn of it
            self._put_back(piece, error)
            return
        self._merging.add(part)
        with self._changed:
            self._durable += len(piece)
            self._error = None
            self._hurried = self._hurried and bool(self._pending)
            self._changed.notify_all()

    def _taken(self) -> list[Entry]:
        with self._changed:
            piece: list[Entry] = []
            held = 0
            while self._pending and held < _PIECE_BYTES:
                piece.append(self._pending.popleft())
                held += len(piece[-1].answer)
            self._pending_bytes -= held
            self._due = time.monotonic() if self._pending else None  # what is left has waited long enough
            return piece

    def _put_back(self, piece: list[Entry], error: Exception) -> None:
        problem = error if isinstance(error, InputError) else InputError(f"cannot be written: {error}")
        message = f"the ledger of finished calls {problem.problem}; make room or give rights, and run it again"
        with self._changed:
            self._pending.extendleft(reversed(piece))
            self._pending_bytes += sum(len(entry.answer) for entry in piece)
            self._error = InputError(message, path=self._folder)
            self._error.__cause__ = error
            self._failures += 1
            self._hurried = False
            self._due = time.monotonic() + self._flush_s
            self._changed.notify_all()


class _Merging:
    """Merges the small parts of one writer, step by step, so that new entries never wait for long.

    Large parts are left alone, and of those below each tier's size there are never many: however long a job runs, its
    parts are few. The merged part is there before the others go: readers meet an entry twice, but never miss it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._parts: list[Stored] = []
        self._steps: Iterator[None] | None = None

    def add(self, part: Stored) -> None:
        """A part that was written."""
        self._parts.append(part)

    def is_wanted(self) -> bool:
        """Whether there is something to do."""
        if self._steps is None:
            chosen = next((chosen for tier in _TIERS if len(chosen := self._below(tier)) >= _MANY), None)
            self._steps = None if chosen is None else self._merge(_fitting(chosen))
        return self._steps is not None

    def step(self) -> None:
        """Do a piece of the work, of at most one row group or one part."""
        if self._steps is not None and next(self._steps, _DONE) is _DONE:
            self._steps = None

    def at_end(self) -> Iterator[None]:
        """Finish what was begun, and merge whatever is small."""
        yield from self._steps or ()
        chosen = _fitting(self._below(_TIERS[-1]))
        if len(chosen) > 1:
            yield from self._merge(chosen)

    def _below(self, tier: int) -> list[Stored]:
        return [part for part in self._parts if part.bytes < tier]

    def _merge(self, chosen: list[Stored]) -> Iterator[None]:
        # Parts that cannot be merged stay as they are, and nothing is lost: they are not tried again.
        self._parts = [part for part in self._parts if part not in chosen]
        encoder = Encoder()
        copied: list[Stored] = []
        for part in chosen:
            try:
                with PartReader(part.path) as reader:
                    for group in range(reader.groups):
                        encoder.add(reader.rows(group))
                        yield
            except PartError:
                continue
            copied.append(part)
        with suppress(InputError):  # no room for another file, say: adding will meet the same, or all is well again
            self._parts.append(store.put(self._folder, encoder.finish()))
            yield
            for part in copied:
                store.delete(part.path)


def _fitting(chosen: list[Stored]) -> list[Stored]:
    """The first parts, as many as together make one of bounded size."""
    fitting, held = [], 0
    for part in chosen:
        held += part.bytes
        if held > _PART_BYTES:
            break
        fitting.append(part)
    return fitting


def _encoded(entries: list[Entry]) -> pa.Buffer:
    encoder = Encoder()
    for group in parts.row_groups(entries):
        encoder.add(parts.table_of(group))
    return encoder.finish()
