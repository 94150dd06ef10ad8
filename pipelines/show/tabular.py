"""Small tables of texts, for a terminal and for GitHub's Markdown."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import click
from rich.cells import cell_len

NO_VALUE = "–"
GAP = 3
"""Blanks between two columns."""

_PARTS = re.compile(r"\(?[^\s,:/=;(-]*[\s,:/=;-]*")

_SPECIALS = re.compile(r"([\\`*_{}\[\]|~$])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def number(value: float | None, form: str = ".4f") -> str:
    """Write a number; without one, a dash.

    >>> number(0.25), number(-0.5, "+.2f"), number(None)
    ('0.2500', '-0.50', '–')
    """
    return NO_VALUE if value is None else format(value, form)


def interval(low: float | None, high: float | None, form: str = "+.4f") -> str:
    return NO_VALUE if low is None or high is None else f"{low:{form}} to {high:{form}}"


@dataclass(frozen=True)
class Table:
    """Texts in rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    drop: Sequence[str] = ()
    sentences: Collection[str] = ()
    strong: Collection[tuple[int, int]] = ()

    def worded(self) -> list[int]:
        return [place for place, name in enumerate(self.columns) if place < self.left or name in self.sentences]

    def widths(self) -> list[int]:
        return [max(map(_letters, column)) for column in zip(self.columns, *self.rows, strict=True)]

    def printable(self) -> "Table":
        """The table, whatever its texts hold, with a line for every row."""
        columns, *rows = ([printable(cell) for cell in cells] for cells in (self.columns, *self.rows))
        return replace(self, columns=columns, rows=rows, drop=[printable(heading) for heading in self.drop])

    def without(self, heading: str) -> "Table":
        place = list(self.columns).index(heading)
        columns, *rows = ([*cells[:place], *cells[place + 1 :]] for cells in (self.columns, *self.rows))
        strong = {(row, at - (at > place)) for row, at in self.strong if at != place}
        return replace(self, columns=columns, rows=rows, left=self.left - (place < self.left), strong=strong)


def printable(text: str) -> str:
    """A text without what would move the cursor, colour a terminal, or end a row of a table.

    >>> printable("one\\ntwo")
    'one two'
    """
    return "".join(letter if letter.isprintable() else " " for letter in text)


def lines_of(table: Table, *, strong: bool = False) -> list[str]:
    widths = table.widths()
    worded = set(table.worded())

    def lines(cells: Sequence[str], bold: Collection[int] = (), *, low: bool = False) -> Iterator[str]:
        parts = [cell.split("\n") for cell in cells]
        height = max(map(len, parts))
        for line in range(height):
            padded = []
            for place, (part, width) in enumerate(zip(parts, widths, strict=True)):
                at = line - (height - len(part) if low else 0)
                text = part[at] if 0 <= at < len(part) else ""
                room = " " * (width - cell_len(text))
                shown = click.style(text, bold=True) if place in bold and text else text
                padded.append(shown + room if place in worded else room + shown)
            yield (" " * GAP).join(padded).rstrip()

    bold = [{place for row, place in table.strong if strong and row == number} for number in range(len(table.rows))]
    body = [line for cells, marked in zip(table.rows, bold, strict=True) for line in lines(cells, marked)]
    return [*lines(table.columns, low=True), "─" * width_of(table), *body]


def width_of(table: Table) -> int:
    widths = table.widths()
    return sum(widths) + GAP * (len(widths) - 1)


def pieces(text: str, most: int) -> list[str]:
    """A text in pieces, cut behind blanks and signs, and before brackets, where it has some.

    >>> pieces("bm25:chunk_size=256,top_k=10", 20)
    ['bm25:chunk_size=256,', 'top_k=10']
    >>> pieces("Faithfulness(judge=lexical)", 16)
    ['Faithfulness', '(judge=lexical)']
    """
    parts = [""]
    for part in _PARTS.findall(text):
        if parts[-1] and cell_len((parts[-1] + part).rstrip()) > most:
            parts.append("")
        rest = part
        while cell_len(rest) > most:
            head = _beginning(rest, most)
            parts[-1:] = [head, ""]
            rest = rest[len(head) :]
        parts[-1] += rest
    return [piece.rstrip() for piece in parts if piece.strip()] or [""]


def _beginning(text: str, most: int) -> str:
    """The first letters of a text that fit, at least one."""
    end = 1
    while end < len(text) and cell_len(text[: end + 1]) <= most:
        end += 1
    return text[:end]


def _letters(cell: str) -> int:
    return max(cell_len(line) for line in cell.split("\n"))


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
