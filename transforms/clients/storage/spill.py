"""Large batches between stages of a local runner: in a file, not in memory.

Beam's local runner keeps everything between two stages in memory, and copies it several times. Where a spill folder is
set, coders write a batch there and pass on its place; the reading stage maps the file.
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
_WORTH_A_MAPPING = 1 << 15  # of batches; a process may have 65,530 mappings, and passes on many small batches
_MOST_IN_MEMORY = 1 << 20  # of the bytes that `mapped` takes


@shared
@contextmanager
def spilling() -> Iterator[None]:
    """Spill batches of this process, and of the worker processes it starts; the files are deleted afterwards.

    The folder is in Python's folder of temporary files (TMPDIR). Files that killed runs left there are removed. Blocks
    that overlap, in one thread or in several, have one folder.
    """
    if folder() is not None:
        yield
        return
    _remove_abandoned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name, _locked(Path(name)):
        os.environ[_FOLDER_VARIABLE] = name
        try:
            yield
        finally:
            del os.environ[_FOLDER_VARIABLE]
            _close(name)


def folder() -> str | None:
    """The folder that batches are spilled to; None where they are not spilled."""
    return os.environ.get(_FOLDER_VARIABLE)


def write(encoded: "pa.Buffer") -> bytes | None:
    """Spill an encoded batch; returns its place, or None for a small batch or without spilling."""
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
    """The encoded batch at a place; a large one is mapped, not copied."""
    import pyarrow as pa

    offset, length = _AT.unpack_from(place)
    page = offset - offset % mmap.ALLOCATIONGRANULARITY
    with FileIO(os.fsdecode(place[_AT.size :])) as file:
        if length < _WORTH_A_MAPPING:
            return pa.py_buffer(os.pread(file.fileno(), length, offset))
        mapped = mmap.mmap(file.fileno(), offset - page + length, offset=page, access=mmap.ACCESS_READ)
    return pa.py_buffer(mapped)[offset - page :]


def mapped(pieces: Iterable[tuple[int, bytes]]) -> "mmap.mmap | bytes":
    """Bytes at some offsets as one buffer, a large one in a file without a name, whose pages the system can drop.

    Raises:
        OSError: there is no space for temporary files.
    """
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

    Arrow keeps what it has freed for its next tables, and so does the C library: without this a process holds the
    largest amount of each of them at the end, though it never used them together.
    """
    import ctypes

    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def share_heap() -> None:
    """Let glibc's threads share one heap: with a heap each, a judged run of hours holds the gaps of all of them.

    Threads wait for each other then, which costs 6% of the CPU time of a run that only reads and scores.
    """
    import ctypes

    most_heaps = -8  # in malloc.h
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).mallopt(most_heaps, 1)


_open_files: dict[str, FileIO] = {}  # for each spill folder, the file that this process appends to
_guard = threading.Lock()


def _append(name: str, encoded: "pa.Buffer") -> bytes:
    path = Path(name) / f"{os.getpid()}.arrows"
    with _guard:
        file = _open_files.get(name)
        if file is None:
            file = _open_files[name] = FileIO(path, "ab")
        start = file.tell()
        _write_all(file, encoded)
        _write_all(file, bytes(-len(encoded) % _ALIGNMENT))  # Arrow wants its buffers at aligned addresses
        return _AT.pack(start, len(encoded)) + os.fsencode(path)


def _close(name: str) -> None:
    with _guard:
        file = _open_files.pop(name, None)
    if file is not None:
        file.close()


def _write_all(file: FileIO, content: "bytes | pa.Buffer") -> None:
    """Write without Python's buffer, which would try and fail again when the file is closed."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]


@contextmanager
def _locked(spill: Path) -> Iterator[None]:
    beside = spill / "new"
    with beside.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        beside.rename(spill / _LOCK)  # it becomes visible only when it is locked
        yield


def _remove_abandoned(parent: Path) -> None:
    for lock in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), lock.open("r+") as handle:  # in use, or another user's
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
