"""Indexes that are kept in a folder, and when they were used last: each use gives the manifest a new time."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rankbeam.transforms.clients.retrievers.index.kept import MANIFEST, alone
from rankbeam.transforms.clients.storage import files, matching


@dataclass(frozen=True)
class KeptIndex:
    """An index that is kept."""

    folder: str
    size: int
    used: datetime


def kept_indexes(root: str) -> list[KeptIndex]:
    """The indexes below a folder of any filesystem, by their folders: SOURCE/CONTENT/INDEX."""
    pattern = files.join(root, "*", "*", "*", "*")
    by_folder: defaultdict[str, list[tuple[str, int, float]]] = defaultdict(list)
    for path, size, changed in matching.version(pattern) if files.match(pattern) else ():
        by_folder[path.rpartition("/")[0]].append((path, size, changed))
    return [
        KeptIndex(
            folder,
            sum(size for _, size, _ in parts),
            datetime.fromtimestamp(max(changed for _, _, changed in parts), UTC),
        )
        for folder, parts in sorted(by_folder.items())
    ]


def delete(indexes: Sequence[KeptIndex]) -> None:
    """Delete indexes: the manifest first, so that one that is deleted in part is none."""
    for index in indexes:
        is_local = files.is_local(index.folder)
        with alone(Path(index.folder).with_suffix(".lock")) if is_local else nullcontext():
            files.delete(files.join(index.folder, MANIFEST))
            files.delete(index.folder)
