"""Small tables of texts, for a terminal and for GitHub's Markdown."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

_SPECIALS = re.compile(r"([\\`*_{}\[\]|~$])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@dataclass(frozen=True)
class Table:
    """Texts in rows.

    Attributes:
        columns: their headings.
        rows: as many texts each.
        left: so many columns, from the first, hold words and stand to the left; the others hold numbers.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1


def printable(text: str) -> str:
    """A text without what would move the cursor, colour a terminal, or end a row of a table.

    >>> printable("one\\ntwo")
    'one two'
    """
    return "".join(letter if letter.isprintable() else " " for letter in text)


def text_table(table: Table) -> str:
    """As lines of equal width; a table that is folded to the width of a terminal would be of no use."""
    lines = [[printable(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = []
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            room = " " * (width - cell_len(cell))
            padded.append(cell + room if place < table.left else room + cell)
        return "   ".join(padded).rstrip()

    head, *rows = map(line, lines)
    return "\n".join([head, "─" * (sum(widths) + 3 * (len(widths) - 1)), *rows])


def markdown_table(table: Table) -> str:
    """As a table of GitHub's Markdown, whatever the texts hold."""
    columns, *rows = ([markdown_text(cell) for cell in row] for row in (table.columns, *table.rows))
    return markdown_rows(Table(columns, rows, table.left))


def markdown_rows(table: Table) -> str:
    """As a table of GitHub's Markdown, of cells that are Markdown already."""
    rule = ["---" if place < table.left else "---:" for place in range(len(table.columns))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (table.columns, rule, *table.rows))


def markdown_text(text: str) -> str:
    r"""A text that Markdown shows as it is: neither markup nor HTML nor the end of a row.

    >>> markdown_text("a|b <i>")
    'a\\|b &lt;i&gt;'
    """
    escaped = _SPECIALS.sub(r"\\\1", printable(text))
    return "".join(_ENTITIES.get(letter, letter) for letter in escaped)
