"""Large batches on their way through a runner of this machine: in a file, not in its memory.

Beam's local runner keeps everything between two stages in memory, and copies it several times. Where a folder is
named to spill to, coders leave a batch there and pass on where it lies; whoever reads it maps the file.
"""

import fcntl
import mmap
import os
import shutil
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

import pyarrow as pa

_FOLDER_VARIABLE = "RANKBEAM_SPILL_FOLDER"
_PREFIX = "rankbeam-spill-"
_LOCK = "lock"
_AT = struct.Struct("<QQ")
_ALIGNMENT = 64
_WORTH_A_FILE = 1 << 15


@contextmanager
def spilling() -> Iterator[None]:
    """Spill what this process, and the worker processes it starts, pass between stages; gone afterwards.

    The folder lies where Python keeps temporary files (TMPDIR). What runs left there that were killed is removed.
    """
    _remove_abandoned(Path(tempfile.gettempdir()))
    outer = folder()
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name, _locked(Path(name)):
        os.environ[_FOLDER_VARIABLE] = name
        try:
            yield
        finally:
            del os.environ[_FOLDER_VARIABLE]
            if outer is not None:
                os.environ[_FOLDER_VARIABLE] = outer
            _files.close(name)


def folder() -> str | None:
    """Where batches are spilled to; None where they are not."""
    return os.environ.get(_FOLDER_VARIABLE)


def write(encoded: pa.Buffer) -> bytes | None:
    """Spill an encoded batch; returns where it lies, or None where it is not worth it or nothing is spilled.

    Raises:
        OSError: there is no room.
    """
    name = folder()
    if name is None or len(encoded) < _WORTH_A_FILE:
        return None
    try:
        return _files.append(name, encoded)
    except OSError as error:
        problem = f"{error.strerror}; temporary files need more room, set TMPDIR to a larger disk"
        raise OSError(error.errno, problem, name) from error


def holds(place: bytes) -> bool:
    """Whether a place lies in the folder that is spilled to now."""
    name = folder()
    return name is not None and place[_AT.size :].startswith(os.fsencode(name))


def read(place: bytes) -> pa.Buffer:
    """The encoded batch that lies there, mapped, not copied."""
    offset, length = _AT.unpack_from(place)
    page = offset - offset % mmap.ALLOCATIONGRANULARITY
    with Path(os.fsdecode(place[_AT.size :])).open("rb") as file:
        mapped = mmap.mmap(file.fileno(), offset - page + length, offset=page, access=mmap.ACCESS_READ)
    return pa.py_buffer(mapped)[offset - page :]


class _Files:
    """The file that this process appends to, for each folder it spills to."""

    def __init__(self) -> None:
        self._open: dict[str, FileIO] = {}
        self._guard = threading.Lock()

    def append(self, name: str, encoded: pa.Buffer) -> bytes:
        with self._guard:
            file = self._open.get(name)
            if file is None:
                file = self._open[name] = FileIO(Path(name) / f"{os.getpid()}.arrows", "ab")
            start = file.tell()
            _write_all(file, encoded)
            _write_all(file, bytes(-len(encoded) % _ALIGNMENT))  # Arrow wants its buffers at aligned addresses
            return _AT.pack(start, len(encoded)) + os.fsencode(Path(name) / f"{os.getpid()}.arrows")

    def close(self, name: str) -> None:
        with self._guard:
            file = self._open.pop(name, None)
        if file is not None:
            file.close()


def _write_all(file: FileIO, content: bytes | pa.Buffer) -> None:
    """Write without a buffer of Python's, which would try again, and fail again, when the file is closed."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


_files = _Files()


@contextmanager
def _locked(spill: Path) -> Iterator[None]:
    beside = spill / "new"
    with beside.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        beside.rename(spill / _LOCK)  # nobody sees it before it is locked
        yield


def _remove_abandoned(parent: Path) -> None:
    for lock in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), lock.open("r+") as handle:  # locked, or another user's: not ours to remove
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
