"""Folders on this machine that are filled once: downloaded collections, and what was extracted from a source.

A folder is complete or does not exist.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rankbeam.transforms.records.errors import InputError

FOLDER = "RANKBEAM_COLLECTIONS"  # the environment variable that names the folder

SOURCE = "source.txt"  # the file next to a corpus that names the folder from which it was extracted

_KEPT_S = 86_400.0


def folder_of(*names: str) -> Path:
    """The folder of a collection; it need not exist."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(FOLDER) or Path(cache, "rankbeam", "collections"), *names)


def source_of(path: str) -> str:
    """The folder from which the corpus at a path was extracted; other paths are unchanged."""
    note = Path(path).parent / SOURCE
    return os.fsdecode(note.read_bytes()) if note.is_relative_to(folder_of("documents")) and note.is_file() else path


@contextmanager
def filling(folder: Path, what: str) -> Iterator[Path]:
    """A temporary folder that is moved into place if the block ends without an error."""
    print(f"fetching {what} into {folder} (once)", file=sys.stderr, flush=True)  # noqa: T201  it may take minutes
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as temporary:
            part = Path(temporary, "part")
            part.mkdir()
            yield part
            try:
                part.rename(folder)
            except OSError:
                if not folder.is_dir():  # otherwise another process has filled it meanwhile
                    raise
    except OSError as error:
        raise InputError(f"{what} cannot be stored in {folder} ({error}); {FOLDER} names another folder") from error


def extracted(kind: str, source: object, state: object, what: str, fill: Callable[[Path], None]) -> Path:
    """The private folder with what `fill` extracts from one state of a source; others of it are deleted another day.

    Source and state are JSON values; `kind` names the folder of such folders, and `what` the content, for people.
    """
    own = folder_of(kind, _hash(source))
    folder = own / _hash(state)
    if not folder.is_dir():
        folder_of(kind).mkdir(parents=True, exist_ok=True, mode=0o700)
        with filling(folder, what) as part:
            fill(part)
        for earlier in own.iterdir():
            if earlier != folder and earlier.stat().st_mtime < time.time() - _KEPT_S:  # no run may still read it
                shutil.rmtree(earlier, ignore_errors=True)
    return folder


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
