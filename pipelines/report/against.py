"""A comparison with another run, as it is handed to a report."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Against:
    """A comparison with another run.

    Attributes:
        other: the run, in words.
        columns: headings of its table.
        rows: of that table.
        words: so many columns, from the first, hold words; the others hold numbers.
        sentences: what it says.
    """

    other: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int
    sentences: Sequence[str]
