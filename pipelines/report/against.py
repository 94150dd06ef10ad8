"""A comparison with another run, as it is handed to a report."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Against:
    """A comparison with another run."""

    other: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int
    sentences: Sequence[str]
