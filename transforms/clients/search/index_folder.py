"""Folders of files that are built once, and named after what they were built from.

A folder gets its name when it is complete, with the size and checksum of every file. If it is missing or damaged, the
run that needs it builds it; others wait meanwhile. On filesystems whose files cannot be mapped into memory, such as
buckets, there is a shared copy, which machines fetch and verify. Each use gives the manifest a new time.
"""

import fcntl
import glob
import hashlib
import json
import logging
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError

FORMAT = 3
"""The version of the files' format. It is part of the folders' names, so that no version reads another's files. In
format 2, chunks could end inside a grapheme."""

MANIFEST = "manifest.json"  # the file with the sizes and checksums of all others
_BLOCK = 1 << 22
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class IndexFolder:
    """The folder of the indexes for one content of a source."""

    folder: Path
    place: str | None = None

    @classmethod
    def of(cls, root: str, source: str, content: str, shared: str | None = None) -> "IndexFolder":
        """The folder of the indexes for a content; deletes those for earlier contents of the source."""
        source_folder = Path(root) / digest(source)
        indexes = cls(source_folder / content, None if shared is None else files.join(shared, digest(source), content))
        if source_folder.is_dir() and not indexes.folder.exists():
            for earlier in source_folder.iterdir():
                _logger.info("%s has changed since it was indexed; it is being indexed again", source)
                shutil.rmtree(earlier, ignore_errors=True)
        return indexes

    def get(
        self,
        name: str,
        parameters: object,
        make: Callable[[Path], None],
        is_current: Callable[[Path], bool] = lambda _: True,
    ) -> Path:
        """A folder of files, which is built if it is missing or damaged."""
        with self._alone_with(name, parameters) as folder:
            if not self._is_usable(folder) or not is_current(folder):
                shutil.rmtree(folder, ignore_errors=True)
                _make(folder, make)
                if self.place is not None:
                    _send(folder, files.join(self.place, folder.name))
        return folder

    def find(self, name: str, parameters: object) -> Path | None:
        """A folder of files, as in `get`; None if it is missing or damaged."""
        with self._alone_with(name, parameters) as folder:
            return folder if self._is_usable(folder) else None

    def drop(self, name: str, parameters: object) -> None:
        """Delete a folder of files, and its shared copy."""
        with self._alone_with(name, parameters) as folder:
            shutil.rmtree(folder, ignore_errors=True)
            if self.place is not None:
                files.delete(files.join(self.place, folder.name))

    @contextmanager
    def _alone_with(self, name: str, parameters: object) -> Iterator[Path]:
        folder = self.folder / f"{name}-{digest(json.dumps([FORMAT, parameters], sort_keys=True))}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with alone(folder.with_suffix(".lock")):
                yield folder
        except OSError as error:
            problem = f"the index cannot be stored: {error.strerror or error}"
            advice = "free disk space or grant write access to the folder"
            raise InputError(f"{problem}; {advice}", path=str(folder)) from error

    def _is_usable(self, folder: Path) -> bool:
        """Return whether a folder is complete and undamaged; fetches the shared copy if necessary."""
        if (problem := _problem(folder)) is not None:
            _logger.warning("the index %s %s; it is built again", folder, problem)
            shutil.rmtree(folder)
        if folder.exists():
            (folder / MANIFEST).touch()  # its time shows when the index was last used
            return True
        place = None if self.place is None else files.join(self.place, folder.name)
        if place is None or not _fetch(place, folder):
            return False
        if (problem := _problem(folder)) is None:
            with suppress(*files.errors(place)):  # without write access, the index counts as unused
                _copy(folder, place, MANIFEST)
            return True
        _logger.warning("the index %s %s; it is built again", place, problem)
        shutil.rmtree(folder)
        return False


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _make(folder: Path, make: Callable[[Path], None]) -> None:
    unfinished = folder.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)  # left by a killed process
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
    """The problem with the files of a folder; None if they are undamaged, or the folder is missing."""
    if not folder.exists():
        return None
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        damaged = [name for name, state in manifest.items() if _state(folder / name) != state]
    except (OSError, ValueError, AttributeError):
        return "is not complete"
    return f"is damaged ({damaged[0]})" if damaged else None


def _state(path: Path) -> list[int]:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            checksum = zlib.crc32(block, checksum)
    return [path.stat().st_size, checksum]


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Run the block while no other thread or process is in it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(place: str, into: Path) -> bool:
    """Copy an index from its shared copy; returns whether there is one."""
    if not files.exists(files.join(place, MANIFEST)):
        return False
    into.mkdir()
    for path in files.match(files.join(glob.escape(place), "*")):
        name = path.rpartition("/")[2]
        with files.open_raw(path) as source, (into / name).open("wb") as target:
            shutil.copyfileobj(source, target, _BLOCK)
    return True


def _send(folder: Path, place: str) -> None:
    names = sorted(path.name for path in folder.iterdir() if path.name != MANIFEST)
    for name in [*names, MANIFEST]:
        _copy(folder, place, name)


def _copy(folder: Path, place: str, name: str) -> None:
    with (folder / name).open("rb") as source, files.create_file(files.join(place, name)) as target:
        shutil.copyfileobj(source, target, _BLOCK)


@dataclass(frozen=True)
class KeptIndex:
    """A stored index."""

    folder: str
    size: int
    used: datetime


def kept_indexes(root: str) -> list[KeptIndex]:
    """The indexes below a folder on any filesystem, with the layout SOURCE/CONTENT/INDEX."""
    pattern = files.join(glob.escape(root), "*", "*", "*", "*")
    entries = matching.version(pattern) if files.match(pattern) else ()
    by_folder = grouped((path.rpartition("/")[0], (size, changed)) for path, size, changed in entries)
    return [
        KeptIndex(folder, sum(sizes), datetime.fromtimestamp(max(changes), UTC))
        for folder, parts in sorted(by_folder.items())
        for sizes, changes in [zip(*parts, strict=True)]
    ]


def delete(indexes: Sequence[KeptIndex]) -> None:
    """Delete indexes, with the manifest first, so that a partly deleted index counts as missing."""
    for index in indexes:
        is_local = files.is_local(index.folder)
        with alone(Path(index.folder).with_suffix(".lock")) if is_local else nullcontext():
            files.delete(files.join(index.folder, MANIFEST))
            files.delete(index.folder)
