"""Store large batches between stages of a local runner in a file instead of memory.

Beam's local runner keeps all data between two stages in memory, and copies it several times. If a spill folder is set,
coders write batches there and pass on their places; the reading stage maps the file.
"""

import errno
import fcntl
import mmap
import os
import shutil
import struct
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from rankbeam.transforms.clients.sharing import shared

if TYPE_CHECKING:  # Arrow takes a tenth of a second to import
    import pyarrow as pa

_FOLDER_VARIABLE = "RANKBEAM_SPILL_FOLDER"
_PREFIX = "rankbeam-spill-"
_LOCK = "lock"
_AT = struct.Struct("<QQ")
_ALIGNMENT = 64
_WORTH_A_FILE = 1 << 11
_WORTH_A_MAPPING = 1 << 15  # bytes; many batches are small, and a process may only have 65,530 mappings
_MOST_IN_MEMORY = 1 << 20  # bytes that `mapped` keeps in memory


@shared
@contextmanager
def spilling() -> Iterator[None]:
    """Spill batches of this process and of the worker processes that it starts; delete the files afterwards.

    The spill folder is in Python's folder for temporary files (TMPDIR). Files left there by killed runs are removed.
    Overlapping blocks, in one thread or in several, share a folder.
    """
    if folder() is not None:
        yield
        return
    _remove_abandoned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name, _hold_lock(Path(name)):
        os.environ[_FOLDER_VARIABLE] = name
        try:
            yield
        finally:
            del os.environ[_FOLDER_VARIABLE]
            _close(name)


def folder() -> str | None:
    """The folder that batches are spilled to; None if they are not spilled."""
    return os.environ.get(_FOLDER_VARIABLE)


def write(encoded: "pa.Buffer") -> bytes | None:
    """Spill an encoded batch and return its place; None if it is small, or if batches are not spilled."""
    name = folder()
    if name is None or len(encoded) < _WORTH_A_FILE:
        return None
    try:
        return _append(name, encoded)
    except OSError as error:
        raise _with_advice(error, name) from error


def holds(place: bytes) -> bool:
    name = folder()
    return name is not None and place[_AT.size :].startswith(os.fsencode(name))


def read(place: bytes) -> "pa.Buffer":
    """Read the encoded batch at a place; a large batch is mapped, not copied."""
    import pyarrow as pa

    offset, length = _AT.unpack_from(place)
    page = offset - offset % mmap.ALLOCATIONGRANULARITY
    with FileIO(os.fsdecode(place[_AT.size :])) as file:
        if length < _WORTH_A_MAPPING:
            return pa.py_buffer(os.pread(file.fileno(), length, offset))
        mapped = mmap.mmap(file.fileno(), offset - page + length, offset=page, access=mmap.ACCESS_READ)
    return pa.py_buffer(mapped)[offset - page :]


def join_pieces(pieces: Iterable[tuple[int, bytes]]) -> "mmap.mmap | bytes":
    """Join bytes at offsets to one buffer; a large buffer is in an unnamed file, so the system can drop its pages."""
    try:
        with tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY, dir=folder()) as file:
            for offset, piece in pieces:
                if offset + len(piece) > _MOST_IN_MEMORY:
                    file.rollover()
                file.seek(offset)
                file.write(piece)
            if file.seek(0, os.SEEK_END) <= _MOST_IN_MEMORY:
                file.seek(0)
                return file.read()
            file.flush()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise _with_advice(error, folder() or tempfile.gettempdir()) from error


def _with_advice(error: OSError, folder: str) -> OSError:
    way_out = "temporary files need more space, set TMPDIR to a larger disk"
    if error.errno == errno.EMFILE:
        way_out = "raise the limit of this shell with `ulimit -n 10000`"
    problem = f"{error.strerror}; {way_out}"
    return OSError(error.errno, problem, folder)


def release_unused_memory() -> None:
    """Return memory of freed objects to the system, before work that allocates by other means.

    Arrow keeps freed memory for its next tables, and so does the C library. Without this call, a process ends up with
    the largest amount that each of them ever used, although they never needed it at the same time.
    """
    import ctypes

    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def share_heap() -> None:
    """Let glibc's threads share one heap: with separate heaps, the unused gaps of all of them add up in long runs.

    Threads then wait for each other, which costs a run that only reads and scores 6% of its CPU time.
    """
    import ctypes

    most_heaps = -8  # in malloc.h
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(most_heaps, 1)


_open_files: dict[str, FileIO] = {}  # the file to which this process appends, by spill folder
_guard = threading.Lock()


def _append(name: str, encoded: "pa.Buffer") -> bytes:
    path = Path(name) / f"{os.getpid()}.arrows"
    with _guard:
        file = _open_files.get(name)
        if file is None:
            file = _open_files[name] = FileIO(path, "ab")
        start = file.tell()
        _write_all(file, encoded)
        _write_all(file, bytes(-len(encoded) % _ALIGNMENT))  # Arrow expects buffers at aligned addresses
        return _AT.pack(start, len(encoded)) + os.fsencode(path)


def _close(name: str) -> None:
    with _guard:
        file = _open_files.pop(name, None)
    if file is not None:
        file.close()


def _write_all(file: FileIO, content: "bytes | pa.Buffer") -> None:
    """Write without Python's buffer, which would try again, and fail again, when the file is closed."""
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[file.write(remaining) :]


@contextmanager
def _hold_lock(spill: Path) -> Iterator[None]:
    unlocked = spill / "new"
    with unlocked.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unlocked.rename(spill / _LOCK)  # visible under its name only once it is locked
        yield


def _remove_abandoned(parent: Path) -> None:
    for lock in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), lock.open("r+") as handle:  # in use, or another user's
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
