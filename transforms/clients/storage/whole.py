"""Files that are complete as soon as they are visible under their name.

On this machine a complete file is renamed; on other filesystems a file exists once it is closed.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

UNFINISHED = "_"  # readers of a folder of Parquet files skip names with this prefix
_TRIES = 3


@dataclass(frozen=True)
class Stored:
    """A file as a folder lists it: its path and its bytes."""

    path: str
    bytes: int

    @property
    def name(self) -> str:
        """Of the file in its folder."""
        return self.path.rpartition("/")[2]


def put(path: str, content: bytes) -> Stored:
    """Write a file, with its folder, so that no reader ever sees an incomplete one.

    Raises:
        InputError: it cannot be written.
    """
    for _ in range(_TRIES):
        try:
            _write(path, content)
        except FileNotFoundError:  # another process removed the folder at this very moment
            continue
        except InputError:
            raise
        except Exception as error:  # storage clients raise errors of their own classes
            raise InputError(f"cannot be written: {error}", path=path) from error
        return Stored(path, len(content))
    raise InputError("cannot be written: its folder vanishes again and again", path=path)


def listed(folder: str, what: str) -> list[Stored]:
    """The files of a folder, sorted; none where there is no folder.

    Args:
        folder: on any of Beam's filesystems.
        what: name of the files, for the message.

    Raises:
        InputError: it cannot be listed.
    """
    try:
        if not files.is_local(folder):
            matched = FileSystems.match([files.join(folder, "*")])[0].metadata_list
            stored = [Stored(metadata.path, int(metadata.size_in_bytes)) for metadata in matched]
        else:
            stored = list(_scanned(folder))
    except (BeamIOError, OSError) as error:
        raise InputError(f"{what} cannot be looked up: {error}", path=folder) from error
    return sorted(stored, key=lambda file: file.path)


def delete(path: str) -> bool:
    """Delete a file; returns whether this call did."""
    try:
        if files.is_local(path):  # Beam's own deleting takes a name for a pattern
            Path(path).unlink()
        else:
            FileSystems.delete([path])
    except (BeamIOError, OSError):  # another process was faster, or permission is missing
        return False
    return True


def _write(path: str, content: bytes) -> None:
    if not files.is_local(path):
        return files.write(path, content)
    final = Path(path)
    beside = final.with_name(UNFINISHED + final.name)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as handle:
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


def _scanned(folder: str) -> Iterator[Stored]:
    if not Path(folder).is_dir():
        return
    with os.scandir(folder) as items:
        for item in items:
            with suppress(FileNotFoundError):  # deleted at this moment
                if item.is_file():
                    yield Stored(files.join(folder, item.name), item.stat().st_size)
