"""The files of a ledger: how they are named, listed, and written so that nobody ever sees a half of one.

A file is complete as soon as it has its name: on this machine it is renamed to it, elsewhere it exists once closed.
"""

import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

USES = "uses"
_PART = re.compile(r"calls-[0-9a-f]{32}\.parquet")
_USE = re.compile(r"use-[0-9a-f]{32}\.json")
_UNFINISHED = "_"  # readers of a folder of Parquet files leave out what begins like this
_PROBE = re.compile(r"_?probe-[0-9a-f]{32}")
_PROBE_BYTES = 64 << 10
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


def put(folder: str, content: pa.Buffer) -> Stored:
    """Write a part, under a name of its own; returns where.

    Raises:
        InputError: it cannot be written.
    """
    path = files.join(folder, f"calls-{uuid.uuid4().hex}.parquet")
    _put(path, content.to_pybytes())
    return Stored(path, len(content))


def put_use(folder: str, name: str, content: bytes) -> None:
    """Write a record of how a run used the ledger, or write it again.

    Raises:
        InputError: it cannot be written.
    """
    _put(files.join(folder, USES, name), content)


def probe(folder: str) -> None:
    """Make sure that parts can be written: write a file as large as a small one, and delete it.

    Raises:
        InputError: they cannot be.
    """
    path = files.join(folder, f"{_UNFINISHED}probe-{uuid.uuid4().hex}")
    _put(path, os.urandom(_PROBE_BYTES))  # a disk that compresses must not take it for nothing
    delete(path)


def parts_in(folder: str) -> list[Stored]:
    """The parts of a ledger, sorted; none where there is no folder.

    Raises:
        InputError: the folder cannot be listed.
    """
    return [stored for stored in _listed(folder) if _PART.fullmatch(stored.name)]


def uses_in(folder: str) -> list[Stored]:
    """The records of how runs used a ledger, sorted."""
    return [stored for stored in _listed(files.join(folder, USES)) if _USE.fullmatch(stored.name)]


def unfinished_in(folder: str) -> list[Stored]:
    """What writers that were killed have left of parts and records, and what living ones write just now."""
    found = [*_listed(folder), *_listed(files.join(folder, USES))]
    return [stored for stored in found if _is_unfinished(stored.name)]


def delete_left_behind(folder: str, older_than_s: float) -> None:
    """Delete what writers that were killed have left of parts and records on this machine, when that was long ago.

    Elsewhere a file exists once it is whole.
    """
    for stored in unfinished_in(folder) if files.is_local(folder) else ():
        with suppress(OSError):
            if time.time() - Path(stored.path).stat().st_mtime > older_than_s:
                delete(stored.path)


def strangers_in(folder: str) -> list[Stored]:
    """The files that are not the ledger's, by their names."""
    return [
        stored for stored in _listed(folder) if not _PART.fullmatch(stored.name) and not _is_unfinished(stored.name)
    ]


def delete(path: str) -> bool:
    """Delete a file; returns whether this call did."""
    try:
        if files.is_local(path):  # Beam's own deleting takes a name for a pattern
            Path(path).unlink()
        else:
            FileSystems.delete([path])
    except (BeamIOError, OSError):  # somebody else was faster, or has the right to and we have not
        return False
    return True


def _put(path: str, content: bytes) -> None:
    for _ in range(_TRIES):
        try:
            return _write(path, content)
        except FileNotFoundError:  # somebody removed the folder, or cleared the ledger, at this very moment
            continue
        except InputError:
            raise
        except Exception as error:  # what a storage client raises is of its own classes
            raise InputError(f"cannot be written: {error}", path=path) from error
    raise InputError("cannot be written: its folder vanishes again and again", path=path)


def _write(path: str, content: bytes) -> None:
    """Write a file so that nobody ever sees a half of it."""
    if not files.is_local(path):
        return files.write(path, content)
    final = Path(path)
    beside = final.with_name(_UNFINISHED + final.name)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())  # merged parts replace others: they must outlive a crash of the machine
        beside.replace(final)
    except FileNotFoundError:
        raise
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise InputError(f"cannot be written: {error.strerror or error}", path=path) from error


def _listed(folder: str) -> list[Stored]:
    try:
        if not files.is_local(folder):
            found = FileSystems.match([files.join(folder, "*")])[0].metadata_list
            listed = [Stored(each.path, int(each.size_in_bytes)) for each in found]
        else:
            listed = list(_scanned(folder))
    except (BeamIOError, OSError) as error:
        raise InputError(f"the ledger cannot be looked up: {error}", path=folder) from error
    return sorted(listed, key=lambda stored: stored.path)


def _scanned(folder: str) -> Iterator[Stored]:
    if not Path(folder).is_dir():
        return
    with os.scandir(folder) as found:
        for each in found:
            with suppress(FileNotFoundError):  # merged in this moment
                if each.is_file():
                    yield Stored(files.join(folder, each.name), each.stat().st_size)


def _is_unfinished(name: str) -> bool:
    return name.startswith(_UNFINISHED) and any(kind.fullmatch(name[1:]) for kind in (_PART, _USE, _PROBE))
