"""Folders of files that are made once, and kept under a name that says what they were made from.

A folder appears under its name when it is complete, with the size and checksum of every file. A run that needs it and
does not find it whole makes it; others wait meanwhile.
"""

import fcntl
import hashlib
import json
import logging
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rankbeam.transforms.clients.retrievers.index import shipped
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

FORMAT = 2
"""Of the files; a newer one has other names, so that older files are never read by it."""

MANIFEST = "manifest.json"
"""The file with the size and the checksum of all others."""
_BLOCK = 1 << 22
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class IndexFolder:
    """The folder of the indexes of one content of some files."""

    folder: Path
    place: str | None = None

    @classmethod
    def of(cls, root: str, source: str, content: str, shared: str | None = None) -> "IndexFolder":
        """The indexes of a content; those of what the source held earlier are deleted."""
        of_source = Path(root) / digest(source)
        indexes = cls(of_source / content, None if shared is None else files.join(shared, digest(source), content))
        if of_source.is_dir() and not indexes.folder.exists():
            for earlier in of_source.iterdir():
                _logger.info("%s has changed since it was indexed; it is indexed again", source)
                shutil.rmtree(earlier, ignore_errors=True)
        return indexes

    def get(
        self,
        name: str,
        parameters: object,
        make: Callable[[Path], None],
        is_current: Callable[[Path], bool] = lambda _: True,
    ) -> Path:
        """A folder of files, made where it is not there or not whole."""
        with self._alone_with(name, parameters) as folder:
            if not self._is_there(folder) or not is_current(folder):
                shutil.rmtree(folder, ignore_errors=True)
                _make(folder, make)
                if self.place is not None:
                    shipped.send(folder, files.join(self.place, folder.name), MANIFEST)
        return folder

    def find(self, name: str, parameters: object) -> Path | None:
        """A folder of files, as `get`; None where it is not there or not whole."""
        with self._alone_with(name, parameters) as folder:
            return folder if self._is_there(folder) else None

    @contextmanager
    def _alone_with(self, name: str, parameters: object) -> Iterator[Path]:
        folder = self.folder / f"{name}-{digest(json.dumps([FORMAT, parameters], sort_keys=True))}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with alone(folder.with_suffix(".lock")):
                yield folder
        except OSError as error:
            raise InputError(f"the index cannot be kept: {error.strerror or error}", path=str(folder)) from error

    def _is_there(self, folder: Path) -> bool:
        """Return whether a folder is there and whole, if need be after it was copied from its place."""
        if (problem := _problem(folder)) is not None:
            _logger.warning("the index %s %s; it is built again", folder, problem)
            shutil.rmtree(folder)
        if folder.exists():
            (folder / MANIFEST).touch()  # its time says when the index was used last
            return True
        place = None if self.place is None else files.join(self.place, folder.name)
        if place is None or not shipped.fetched(place, folder, MANIFEST):
            return False
        if (problem := _problem(folder)) is None:
            shipped.mark_used(place, folder, MANIFEST)
            return True
        _logger.warning("the index %s %s; it is built again", place, problem)
        shutil.rmtree(folder)
        return False


def digest(text: str) -> str:
    """A short name for a text.

    >>> digest("bm25")
    '635d603dcb715a7c'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _make(folder: Path, make: Callable[[Path], None]) -> None:
    unfinished = folder.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
    unfinished.mkdir()
    try:
        make(unfinished)
        manifest = {path.name: _state(path) for path in sorted(unfinished.iterdir())}
        (unfinished / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _problem(folder: Path) -> str | None:
    """The problem with the files of a folder; None where they are whole, or there is none."""
    if not folder.exists():
        return None
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        damaged = [name for name, state in manifest.items() if _state(folder / name) != state]
    except (OSError, ValueError, AttributeError):
        return "is not complete"
    return f"is damaged ({damaged[0]})" if damaged else None


def _state(path: Path) -> list[int]:
    """Size and checksum of a file."""
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return [path.stat().st_size, checksum]


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other thread or process is in the block."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
