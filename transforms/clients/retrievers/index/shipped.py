"""Indexes on a filesystem that cannot be mapped into memory, such as a bucket: copied to the machines that need them.

The machine that makes an index copies it there, the manifest last; the others copy it from there, and verify it.
"""

import shutil
from contextlib import suppress
from pathlib import Path

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from rankbeam.transforms.clients.storage import files

_BLOCK = 1 << 22


def fetched(place: str, into: Path, manifest: str) -> bool:
    """Copy an index from its place; returns whether there is one."""
    if not files.exists(files.join(place, manifest)):
        return False
    into.mkdir()
    for path in files.match(files.join(place, "*")):
        name = path.rpartition("/")[2]
        with files.open_raw(path) as source, (into / name).open("wb") as target:
            shutil.copyfileobj(source, target, _BLOCK)
    return True


def mark_used(place: str, folder: Path, manifest: str) -> None:
    """Write the manifest of an index again, so that its time says when it was used last.

    Where that is not allowed, the index counts as not used: it can be built again.
    """
    with suppress(*files.errors(place)):
        _copy(folder, place, manifest)


def send(folder: Path, place: str, manifest: str) -> None:
    """Copy an index to its place."""
    names = sorted(path.name for path in folder.iterdir() if path.name != manifest)
    for name in [*names, manifest]:
        _copy(folder, place, name)


def _copy(folder: Path, place: str, name: str) -> None:
    target = FileSystems.create(files.join(place, name), compression_type=CompressionTypes.UNCOMPRESSED)
    with (folder / name).open("rb") as source, target:
        shutil.copyfileobj(source, target, _BLOCK)
