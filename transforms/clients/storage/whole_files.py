"""Write files that are complete as soon as they are visible under their name.

A local file is renamed once it is complete; on other filesystems, a file exists once it is closed.
"""

import glob
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.records.errors import InputError

PRIVATE = ".private"  # marks a folder in which only the owner may read new files and folders
UNFINISHED = "_"  # readers of a folder of Parquet files skip names with this prefix
_RETRYING = Retrying(retry=retry_if_exception_type(FileNotFoundError), stop=stop_after_attempt(20), reraise=True)
"""Another process may remove a folder, or clear a ledger, just when a file is being written."""


@dataclass(frozen=True)
class StoredFile:
    """A file in the listing of a folder: its path and its size in bytes."""

    path: str
    bytes: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def put(path: str, content: bytes) -> StoredFile:
    """Write a file, creating its folder, so that no reader ever sees an incomplete file."""
    try:
        _RETRYING(_write, path, content)  # each thread has its own state; a copy would leave a reference cycle
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError("cannot be written: its folder keeps disappearing", path=path) from error
    except Exception as error:  # storage clients have their own error classes
        raise InputError(f"cannot be written: {error}", path=path) from error
    return StoredFile(path, len(content))


def list_files(folder: str, what: str) -> list[StoredFile]:
    """The files of a folder, sorted; empty if the folder does not exist."""
    with files.translate_errors(folder, f"{what} cannot be looked up"):
        if not files.is_local(folder):
            versions = matching.remote_versions([files.join(glob.escape(folder), "*")])
            stored = [StoredFile(path, size) for path, size, _ in versions]
        else:
            stored = list(_scan(folder))
    return sorted(stored, key=lambda file: file.path)


def delete(path: str) -> bool:
    """Delete a file; return whether this call deleted it."""
    try:
        if files.is_local(path):  # Beam's delete reads names as patterns
            Path(path).unlink()
        else:
            files.delete_objects([path])
    except OSError:  # another process was faster, or permission is missing
        return False
    return True


def make_private(folder: str) -> None:
    """Make a folder that only its owner may read; this also applies to all files and folders created in it."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        Path(folder).chmod(0o700)
        (Path(folder) / PRIVATE).touch(0o600)
    except OSError as error:
        raise InputError(f"cannot be made private: {error.strerror or error}", path=folder) from error


def mode_in(folder: Path) -> int:
    """The mode of a new file, before the umask: private if `make_private` made its folder or the folder's parent."""
    return 0o600 if any((path / PRIVATE).exists() for path in (folder, folder.parent)) else 0o666


def make_folder(folder: Path) -> None:
    """Make a folder that is as private as its parent."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700 if mode_in(folder) == 0o600 else 0o777)


def opened_new(path: Path, mode: str = "wb", buffering: int = -1) -> BinaryIO:
    """Open a file for writing; a new file is as private as its folder."""
    bits = mode_in(path.parent)
    return cast("BinaryIO", open(path, mode, buffering, opener=lambda name, flags: os.open(name, flags, bits)))


def _write(path: str, content: bytes) -> None:
    if not files.is_local(path):
        return files.write(path, content)
    final = Path(path)
    unfinished = final.with_name(UNFINISHED + final.name)
    try:
        make_folder(final.parent)
        with opened_new(unfinished) as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())  # a file may replace others, so it must survive a crash of the machine
        unfinished.replace(final)
    except FileNotFoundError:
        raise
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {error.strerror or error}", path=path) from error


def _scan(folder: str) -> Iterator[StoredFile]:
    if not Path(folder).is_dir():
        return
    with os.scandir(folder) as items:
        for item in items:
            with suppress(FileNotFoundError):  # it was just deleted
                if item.is_file():
                    yield StoredFile(files.join(folder, item.name), item.stat().st_size)
