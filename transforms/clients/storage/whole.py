"""Files that are complete as soon as they are visible under their name.

On this machine a complete file is renamed; on other filesystems a file exists once it is closed.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

PRIVATE = ".private"  # the mark of a folder whose files and folders are made for their owner alone
UNFINISHED = "_"  # readers of a folder of Parquet files skip names with this prefix
_RETRYING = Retrying(retry=retry_if_exception_type(FileNotFoundError), stop=stop_after_attempt(20), reraise=True)
"""Another process may remove a folder, or clear a ledger, at the very moment in which a file is written."""


@dataclass(frozen=True)
class StoredFile:
    """A file as a folder lists it: its path and its bytes."""

    path: str
    bytes: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def put(path: str, content: bytes) -> StoredFile:
    """Write a file, with its folder, so that no reader ever sees an incomplete one."""
    try:
        _RETRYING(_write, path, content)  # each thread has its own state; a copy would leave a reference cycle
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError("cannot be written: its folder keeps disappearing", path=path) from error
    except Exception as error:  # storage clients raise errors of their own classes
        raise InputError(f"cannot be written: {error}", path=path) from error
    return StoredFile(path, len(content))


def listed(folder: str, what: str) -> list[StoredFile]:
    """The files of a folder, sorted; none where there is no folder."""
    with files.refusing(folder, f"{what} cannot be looked up"):
        if not files.is_local(folder):
            matched = files.beam().match([files.join(folder, "*")])[0].metadata_list
            stored = [StoredFile(metadata.path, int(metadata.size_in_bytes)) for metadata in matched]
        else:
            stored = list(_scanned(folder))
    return sorted(stored, key=lambda file: file.path)


def delete(path: str) -> bool:
    """Delete a file; returns whether this call did."""
    try:
        if files.is_local(path):  # Beam's own deleting takes a name for a pattern
            Path(path).unlink()
        else:
            files.beam().delete([path])
    except OSError:  # another process was faster, or permission is missing
        return False
    return True


def make_private(folder: str) -> None:
    """Make a folder that only its owner may read, as all files and folders that are made in it."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        Path(folder).chmod(0o700)
        (Path(folder) / PRIVATE).touch(0o600)
    except OSError as error:
        raise InputError(f"cannot be made private: {error.strerror or error}", path=folder) from error


def mode_in(folder: Path) -> int:
    """The mode of a new file, before the umask: a folder that `make_private` has made, or its parent, decides."""
    return 0o600 if any((path / PRIVATE).exists() for path in (folder, folder.parent)) else 0o666


def make_folder(folder: Path) -> None:
    """Make a folder, as private as its parent."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700 if mode_in(folder) == 0o600 else 0o777)


def opened_new(path: Path, mode: str = "wb", buffering: int = -1) -> BinaryIO:
    """Open a file for writing; a new one is as private as its folder."""
    own = mode_in(path.parent)
    return cast("BinaryIO", open(path, mode, buffering, opener=lambda name, flags: os.open(name, flags, own)))


def _write(path: str, content: bytes) -> None:
    if not files.is_local(path):
        return files.write(path, content)
    final = Path(path)
    beside = final.with_name(UNFINISHED + final.name)
    try:
        make_folder(final.parent)
        with opened_new(beside) as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())  # a file may replace others, so it must survive a crash of the machine
        beside.replace(final)
    except FileNotFoundError:
        raise
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {error.strerror or error}", path=path) from error


def _scanned(folder: str) -> Iterator[StoredFile]:
    if not Path(folder).is_dir():
        return
    with os.scandir(folder) as items:
        for item in items:
            with suppress(FileNotFoundError):  # deleted at this moment
                if item.is_file():
                    yield StoredFile(files.join(folder, item.name), item.stat().st_size)
