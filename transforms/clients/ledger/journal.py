"""The journal of a ledger's writer: answers that are in no part yet, and the number of calls in flight.

answer ─► journal, at once ─► part, with others ─► the journal's file is deleted
              └── the process is killed: the next reader of the ledger makes a part of it

Writing a part takes milliseconds of processor time, a line of the journal microseconds. So a killed process loses only
unanswered calls. The journal survives its process, but not a crash of the machine: only parts are synchronised.
"""

import fcntl
import json
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from rankbeam.transforms.clients.ledger import store
from rankbeam.transforms.clients.ledger.rows import LedgerEntry
from rankbeam.transforms.clients.storage import whole_files
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.reply import Tokens

_DIGITS = 8  # length of the number of calls in flight at the beginning of a file, and of a line's checksum


class Journal:
    """The journal of one writer on this machine's disk, locked while its process lives. Any thread may use it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: tuple[Path, BinaryIO] | None = None
        self._ended: list[tuple[Path, BinaryIO]] = []
        self._in_flight = 0
        self._lock = threading.Lock()

    def add(self, entry: LedgerEntry) -> None:
        """Append an answer. If this fails (the disk is full, say), the writer's next part fails too, and is retried."""
        tokens, depth = entry.tokens, entry.depth
        values = [
            entry.key,
            None if depth is None else [depth.results, depth.distance],
            entry.answer,
            entry.attempts,
            entry.seconds,
            entry.finished_at.isoformat(),
            [tokens.input, tokens.cached, tokens.output],
            entry.service,
            entry.via,
        ]
        line = json.dumps(values).encode()
        with self._lock, suppress(OSError):
            self._open().write(b"\n%08x%s" % (zlib.crc32(line), line))

    def count_in_flight(self, change: int) -> None:
        """Record that a call begins (1) or has ended (-1)."""
        with self._lock, suppress(OSError):
            self._in_flight += change
            if self._in_flight or self._file is not None:
                _store_count(self._open(), self._in_flight)

    def end_file(self) -> None:
        """Begin a new file, since all answers so far are about to be written to parts."""
        with self._lock, suppress(OSError):
            if self._file is not None:
                ended_file, self._file = self._file, None
                self._ended.append(ended_file)
                if self._in_flight:
                    self._open()
                _store_count(ended_file[1], 0)

    def delete_ended(self) -> None:
        """Delete the ended files, whose answers are in parts."""
        for path, file in self._ended:
            path.unlink(missing_ok=True)
            file.close()
        self._ended = []

    def close(self) -> None:
        self._in_flight = 0
        self.end_file()
        self.delete_ended()

    def _open(self) -> BinaryIO:
        if self._file is None:
            path = store.new_journal(self._folder)
            whole_files.make_folder(path.parent)
            file = whole_files.opened_new(path, "xb", buffering=0)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError:  # without a lock, others would believe that its process was killed
                path.unlink()
                file.close()
                raise
            _store_count(file, self._in_flight)
            file.seek(_DIGITS)
            self._file = path, file
        return self._file[1]


@contextmanager
def left_in(folder: str) -> Iterator[tuple[list[LedgerEntry], int]]:
    """Read the journals of killed processes in a ledger on this machine; deletes them if the block succeeds.

    Yields their answers, and the number of calls that were in flight.
    """
    entries: list[LedgerEntry] = []
    in_flight = 0
    with ExitStack() as stack:
        paths = []
        for path in (Path(stored.path) for stored in store.journals_in(folder)):
            with suppress(OSError):  # its writer is alive, another reader was faster, or it belongs to another user
                file = stack.enter_context(path.open("rb"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                content = file.read() if os.fstat(file.fileno()).st_nlink else b""
                if content:
                    count, *lines = content.split(b"\n")
                    entries += [entry for line in lines if (entry := _entry(line)) is not None]
                    in_flight += int(count[:_DIGITS])
                    paths.append(path)
                else:  # its writer is about to lock it, or another reader has deleted it
                    file.close()
        yield entries, in_flight
        for path in paths:
            path.unlink(missing_ok=True)


def _entry(line: bytes) -> LedgerEntry | None:
    if len(line) < _DIGITS or line[:_DIGITS] != b"%08x" % zlib.crc32(line[_DIGITS:]):
        return None
    key, depth, answer, attempts, seconds, moment, tokens, service, via = json.loads(line[_DIGITS:])
    further = (Tokens(*tokens), service, via)
    depth = None if depth is None else SearchDepth(*depth)
    return LedgerEntry(key, depth, answer, attempts, seconds, datetime.fromisoformat(moment), *further)


def _store_count(file: BinaryIO, in_flight: int) -> None:
    os.pwrite(file.fileno(), b"%0*d" % (_DIGITS, in_flight), 0)
