"""The folder that public collections are kept in, and folders in it that are there whole or not at all."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rankbeam.transforms.records.errors import InputError

FOLDER = "RANKBEAM_COLLECTIONS"
"""The environment variable that names the folder."""


@dataclass(frozen=True)
class PublicCollection:
    """The files of a collection, as an experiment names them."""

    queries: str
    qrels: str
    corpus: str | None


def kept_in(*names: str) -> Path:
    """The folder of a collection; it need not exist."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(FOLDER) or Path(cache, "rankbeam", "collections"), *names)


@contextmanager
def filling(folder: Path, what: str) -> Iterator[Path]:
    """A new folder that takes its place when the block has ended without an error."""
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
                if not folder.is_dir():  # else another process has filled it meanwhile
                    raise
    except OSError as error:
        raise InputError(f"{what} cannot be kept in {folder} ({error}); {FOLDER} names another folder") from error
