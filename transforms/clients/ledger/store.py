"""The files of a ledger: names, listings and writing."""

import hashlib
import os
import re
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from rankbeam.transforms.clients.storage import files, whole_files
from rankbeam.transforms.clients.storage.whole_files import UNFINISHED, StoredFile, delete

USES = "uses"
_ALSO = "also"
_PART = re.compile(r"calls-[0-9a-f]{32}\.parquet")
_USE = re.compile(r"use-[0-9a-f]{32}\.json")
_TRIED = re.compile(r"tried-[0-9a-f]{32}\.json")
_LOG = re.compile(r"error-[0-9a-f]{32}\.log")
_PROBE = re.compile(r"_?probe-[0-9a-f]{32}")
_LISTINGS = 10
_JOURNAL = re.compile(r"_journal-[0-9a-f]{32}\.jsonl")
_OWN = re.compile(f"{_PART.pattern}|{_JOURNAL.pattern}")
_PROBE_BYTES = 64 << 10


def put(folder: str, content: pa.Buffer) -> StoredFile:
    """Write a part under a new name; returns the file."""
    return whole_files.put(files.join(folder, f"calls-{uuid.uuid4().hex}.parquet"), content.to_pybytes())


def put_use(folder: str, name: str, content: bytes) -> str:
    """Write or overwrite a record of how a run used the ledger, or a log; returns its path."""
    return whole_files.put(files.join(folder, USES, name), content).path


def probe(folder: str) -> None:
    """Check that parts can be written: write a file as large as a small part, and delete it."""
    path = files.join(folder, f"{UNFINISHED}probe-{uuid.uuid4().hex}")
    whole_files.put(path, os.urandom(_PROBE_BYTES))  # random, so that a compressing disk cannot shrink it
    delete(path)


def parts_in(folder: str) -> list[StoredFile]:
    """The parts of a ledger, sorted; empty if there is no folder.

    Listing a local folder is not atomic: a merge may add the new part behind the reader's position and remove old ones
    ahead of it. So the folder is listed until two listings in a row are equal.
    """
    listed = _parts(folder)
    for _ in range(_LISTINGS if files.is_local(folder) else 0):
        before, listed = listed, _parts(folder)
        if listed == before:
            break
    return listed


def read_also(folder: str, other: str) -> None:
    """Make every reader of a ledger also read another ledger, which is not changed."""
    name = f"{hashlib.sha256(other.encode()).hexdigest()[:32]}.txt"
    if other not in also_read(folder):
        whole_files.put(files.join(folder, _ALSO, name), other.encode())


def also_read(folder: str) -> list[str]:
    """The other ledgers whose answers count as answers of this ledger, which is on this machine."""
    if not files.is_local(folder):
        return []
    return [files.read_all(file.path).decode() for file in _list_files(files.join(folder, _ALSO))]


def _parts(folder: str) -> list[StoredFile]:
    return [stored for stored in _list_files(folder) if _PART.fullmatch(stored.name)]


def uses_in(folder: str) -> list[StoredFile]:
    return [stored for stored in _list_files(files.join(folder, USES)) if _USE.fullmatch(stored.name)]


def notes_in(folder: str) -> list[StoredFile]:
    """The lists of calls to make last, and the logs of errors."""
    listed = _list_files(files.join(folder, USES))
    return [stored for stored in listed if _TRIED.fullmatch(stored.name) or _LOG.fullmatch(stored.name)]


def tried_name(pool: str, lane: int) -> str:
    return f"tried-{hashlib.sha256(f'{pool} {lane}'.encode()).hexdigest()[:32]}.json"


def new_journal(folder: str) -> Path:
    return Path(folder, f"{UNFINISHED}journal-{uuid.uuid4().hex}.jsonl")


def journals_in(folder: str) -> list[StoredFile]:
    """The journals of a ledger's writers on this machine, sorted."""
    return (
        [stored for stored in _list_files(folder) if _JOURNAL.fullmatch(stored.name)] if files.is_local(folder) else []
    )


def unfinished_in(folder: str) -> list[StoredFile]:
    """Incomplete parts and records: those left by killed writers, and those being written."""
    listed = [*_list_files(folder), *_list_files(files.join(folder, USES))]
    return [stored for stored in listed if _is_unfinished(stored.name)]


def delete_left_behind(folder: str, older_than_s: float) -> None:
    """Delete old incomplete parts and records that killed writers left on this machine.

    On other filesystems a file exists only once it is complete.
    """
    for stored in unfinished_in(folder) if files.is_local(folder) else ():
        with suppress(OSError):
            if time.time() - Path(stored.path).stat().st_mtime > older_than_s:
                delete(stored.path)


def foreign_in(folder: str) -> list[StoredFile]:
    """The files that are not the ledger's, by their names."""
    others = [stored for stored in _list_files(folder) if stored.name != whole_files.PRIVATE]
    return [stored for stored in others if not _OWN.fullmatch(stored.name) and not _is_unfinished(stored.name)]


def _list_files(folder: str) -> list[StoredFile]:
    return whole_files.list_files(folder, "the ledger")


def _is_unfinished(name: str) -> bool:
    kinds = (_PART, _USE, _TRIED, _LOG, _PROBE)
    return name.startswith(UNFINISHED) and any(kind.fullmatch(name[1:]) for kind in kinds)
