"""Sizes of the data, its orders and spellings, its folders, and the room on disk that it needs."""

import re
import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

LARGEST_WITH_TEXT = 20_000_000
"""Rows; above, there is only Parquet, and only tools that need not hold everything in dictionaries take part."""


class Variant(StrEnum):
    """The same rows in another order or spelling."""

    GROUPED = "grouped"
    SHUFFLED = "shuffled"
    MIXED = "mixed white space"


BYTES_PER_ROW = {Variant.GROUPED: 54, Variant.SHUFFLED: 18, Variant.MIXED: 38}
"""On the disk, for each row of the run, with its share of the judgements; measured at L."""
PARQUET_BYTES_PER_ROW = 16
RESULT_BYTES_PER_QUERY = 5_000
"""Generous estimate of the bytes that all tools write while they are measured."""


@dataclass(frozen=True)
class Size:
    """A number of queries, and of documents for each; `compared` says whether other tools take part."""

    name: str
    queries: int
    depth: int
    compared: bool = True

    @property
    def rows(self) -> int:
        """Rows of the run, to within 4%."""
        return self.queries * self.depth

    @property
    def text(self) -> bool:
        """Return whether the size has TREC text besides Parquet."""
        return self.rows <= LARGEST_WITH_TEXT

    def folder(self, data: Path, variant: Variant) -> Path:
        """The folder of one of its variants."""
        return data / "-".join([f"{self.queries}x{self.depth}", *variant.split()])

    def bytes_needed(self, data: Path, variants: list[Variant]) -> int:
        """Additional room on disk that measuring this size needs."""
        per_row = BYTES_PER_ROW if self.text else {Variant.GROUPED: PARQUET_BYTES_PER_ROW}
        missing = [variant for variant in variants if not self.folder(data, variant).is_dir()]
        return self.rows * sum(per_row[variant] for variant in missing) + self.queries * RESULT_BYTES_PER_QUERY


_NAMED = (
    Size("S", 1_000, 100),
    Size("1M", 10_000, 100, compared=False),
    Size("M", 6_980, 1_000),
    Size("L", 100_000, 100),
    Size("XL", 1_000_000, 100),
)
NAMED = {size.name: size for size in _NAMED}


def parse_size(text: str) -> Size:
    """A size by its name, or as queries and depth, such as 50x20.

    Raises:
        ValueError: it is neither.
    """
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if not match and text not in NAMED:
        raise ValueError(f"{text!r} is not a size: {', '.join(NAMED)}, or queries and depth such as 50x20")
    return Size(text, int(match[1]), int(match[2])) if match else NAMED[text]


def free_bytes(folder: Path) -> int:
    """Room on the disk of a folder that may not exist yet."""
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    return shutil.disk_usage(there).free
