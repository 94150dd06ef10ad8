"""Leases on this machine's disks: files made with O_EXCL, and changed under a lock that ends with its process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rankbeam.transforms.clients.ledger.leases.lease import ReadFile
from rankbeam.transforms.clients.storage import whole
from rankbeam.transforms.records.errors import InputError

_GUARD = ".guard"


class LocalPlace:
    """A folder of a local disk; it is made with the first lease.

    O_EXCL decides which process makes a file. To replace or delete a file that was read before takes two steps, under a
    lock where the filesystem has locks.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def read(self, name: str) -> ReadFile | None:
        with self._translated(name):
            if (seen := self._now(name)) is None or seen.content:
                return seen
            with self._guarded():  # its maker may be writing it at this moment
                return self._now(name)

    def create(self, name: str, content: bytes) -> bool:
        with self._translated(name):
            whole.make_folder(self._folder)
            with self._guarded():
                return self._created(self._folder / name, content)

    def replace(self, name: str, content: bytes, seen: ReadFile) -> bool:
        with self._translated(name), self._guarded():
            if self._now(name) != seen:
                return False
            beside = self._folder / f".{name}"
            with whole.opened_new(beside) as file:
                file.write(content)
            beside.replace(self._folder / name)
            return True

    def delete(self, name: str, seen: ReadFile) -> None:
        with self._translated(name), self._guarded():
            if self._now(name) == seen:
                (self._folder / name).unlink(missing_ok=True)

    def _now(self, name: str) -> ReadFile | None:
        try:
            content = (self._folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return ReadFile(content, content)

    @staticmethod
    def _created(path: Path, content: bytes) -> bool:
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, whole.mode_in(path.parent))
        except FileExistsError:
            return False
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return True

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with whole.opened_new(self._folder / _GUARD, "ab") as guard:
            with suppress(OSError):  # a filesystem without locks
                fcntl.flock(guard, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            advice = "free disk space or grant write access"
            problem = f"the ledger's lease cannot be written: {error.strerror or error}; {advice}"
            raise InputError(problem, path=str(self._folder / name)) from error
