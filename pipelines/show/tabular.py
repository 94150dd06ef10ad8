"""Small tables of texts, for GitHub's Markdown and for a screen.

In a narrow terminal, tables leave columns out and sentences wrap; a pipe gets everything in full.
"""

import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import click
from rich.cells import cell_len

from rankbeam.transforms.records.errors import pluralize

NO_VALUE = "–"
GAP = 3  # number of blanks between two columns

_UNITS = ("kB", "MB", "GB", "TB")
_PARTS = re.compile(r"\(?[^\s,:/=;(-]*[\s,:/=;-]*")

_SPECIALS = re.compile(r"([\\`*_{}\[\]|~$])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def number(value: float | None, form: str = ".4f") -> str:
    """A number as text, or a dash without a number.

    >>> number(0.25), number(-0.5, "+.2f"), number(None)
    ('0.2500', '-0.50', '–')
    """
    return NO_VALUE if value is None else format(value, form)


def interval(low: float | None, high: float | None, form: str = "+.4f") -> str:
    return NO_VALUE if low is None or high is None else f"{low:{form}} to {high:{form}}"


def bytes_text(count: int) -> str:
    """A number of bytes, in the unit that keeps it below 1,000.

    >>> bytes_text(1), bytes_text(999), bytes_text(1_000_000), bytes_text(2_340_000_000_000_000)
    ('1 byte', '999 bytes', '1.0 MB', '2,340.0 TB')
    """
    if count < 1000:
        return pluralize(count, "byte")
    place = min(len(_UNITS), (len(str(count)) - 1) // 3)
    return f"{count / 1000**place:,.1f} {_UNITS[place - 1]}"


@dataclass(frozen=True)
class Table:
    """Texts in rows."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    drop: Sequence[str] = ()
    sentences: Collection[str] = ()
    strong: Collection[tuple[int, int]] = ()
    gap: int = GAP

    def text_columns(self) -> list[int]:
        return [place for place, name in enumerate(self.columns) if place < self.left or name in self.sentences]

    def widths(self) -> list[int]:
        return [max(map(_letters, column)) for column in zip(self.columns, *self.rows, strict=True)]

    def printable(self) -> "Table":
        """The table with only printable characters, and one line for every row."""
        columns, *rows = ([printable(cell) for cell in cells] for cells in (self.columns, *self.rows))
        return replace(self, columns=columns, rows=rows, drop=[printable(heading) for heading in self.drop])

    def without(self, heading: str) -> "Table":
        place = list(self.columns).index(heading)
        columns, *rows = ([*cells[:place], *cells[place + 1 :]] for cells in (self.columns, *self.rows))
        strong = {(row, column - (column > place)) for row, column in self.strong if column != place}
        return replace(self, columns=columns, rows=rows, left=self.left - (place < self.left), strong=strong)


def printable(text: str) -> str:
    """The text without characters that would move the cursor, colour a terminal, or end a table row.

    >>> printable("one\\ntwo")
    'one two'
    """
    return "".join(letter if letter.isprintable() else " " for letter in text)


def lines_of(table: Table, *, strong: bool = False) -> list[str]:
    widths = table.widths()
    worded = set(table.text_columns())

    def lines(cells: Sequence[str], bold: Collection[int] = (), *, low: bool = False) -> Iterator[str]:
        parts = [cell.split("\n") for cell in cells]
        height = max(map(len, parts))
        for line in range(height):
            padded = []
            for place, (part, width) in enumerate(zip(parts, widths, strict=True)):
                index = line - (height - len(part) if low else 0)
                text = part[index] if 0 <= index < len(part) else ""
                room = " " * (width - cell_len(text))
                shown = click.style(text, bold=True) if place in bold and text else text
                padded.append(shown + room if place in worded else room + shown)
            yield (" " * table.gap).join(padded).rstrip()

    bold = [{place for row, place in table.strong if strong and row == number} for number in range(len(table.rows))]
    body = [line for cells, marked in zip(table.rows, bold, strict=True) for line in lines(cells, marked)]
    return [*lines(table.columns, low=True), "─" * width_of(table), *body]


def width_of(table: Table) -> int:
    widths = table.widths()
    return sum(widths) + table.gap * (len(widths) - 1)


def pieces(text: str, most: int) -> list[str]:
    """A text in pieces, cut after blanks and signs and before brackets if possible.

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
    """A table in GitHub's Markdown, with texts escaped."""
    columns, *rows = ([markdown_text(cell) for cell in row] for row in (table.columns, *table.rows))
    return markdown_rows(Table(columns, rows, table.left))


def markdown_rows(table: Table) -> str:
    """A table in GitHub's Markdown, with cells that are already Markdown."""
    rule = ["---" if place < table.left else "---:" for place in range(len(table.columns))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (table.columns, rule, *table.rows))


def markdown_text(text: str) -> str:
    r"""A text escaped such that Markdown shows it unchanged: as neither markup nor HTML nor the end of a row.

    >>> markdown_text("a|b <i>")
    'a\\|b &lt;i&gt;'
    """
    escaped = _SPECIALS.sub(r"\\\1", printable(text))
    return "".join(_ENTITIES.get(letter, letter) for letter in escaped)


_LONGEST_WORDS, _SHORTEST_WORDS = 30, 8
"""Maximum letters of a text cell in a table that is too wide: longer cells continue on further lines."""

_LEFT_OUT = "Left out to fit {} characters: {}. --wide shows all columns."


@dataclass(frozen=True)
class Screen:
    """Screen that shows text."""

    width: int | None = None  # letters in a line; None if nothing is to be wrapped or left out
    wide: bool = False

    @classmethod
    def of(cls, stream: object = None, *, wide: bool = False) -> "Screen":
        """The terminal behind a stream, by default standard output; no limit if it is a file or a pipe."""
        stream = sys.stdout if stream is None else stream  # None, too, if a daemon has closed it
        is_terminal = getattr(stream, "isatty", lambda: False)()
        return cls(shutil.get_terminal_size().columns if is_terminal else None, wide)

    def table(self, table: Table) -> str:
        """A table; if it is too wide, columns in its `drop` are left out, and a sentence says so."""
        table = table.printable()
        if self.width is None:
            return "\n".join(lines_of(table))
        if self.wide or width_of(table) <= self.width:
            return "\n".join(lines_of(table, strong=True))
        fitted, left_out = _fit_table(table, self.width)
        lines = lines_of(fitted, strong=True)
        if left_out:
            names = ", ".join(heading for heading in table.columns if heading in left_out)
            lines.append(self.prose(_LEFT_OUT.format(self.width, names)))
        return "\n".join(lines)

    def prose(self, text: str, indent: str = "") -> str:
        """Sentences wrapped at blanks; words longer than a line, such as paths, are not broken.

        >>> Screen(20).prose("the best with 95% confidence")
        'the best with 95%\\nconfidence'
        >>> Screen(20).prose("answer   In Frankfurt, so far", indent=" " * 9)
        'answer   In\\n         Frankfurt,\\n         so far'
        """
        if self.width is None:
            return text
        return "\n".join(_wrap_line(line, self.width, indent) for line in text.split("\n"))


WHOLE = Screen()  # a file or a pipe


def _wrap_line(line: str, width: int, indent: str) -> str:
    if len(line) <= width:
        return line
    lines, current = list[str](), ""
    for blanks, word in re.findall(r"(\s*)(\S+)", line):
        if current.strip() and len(current) + len(blanks) + len(word) > width:
            lines.append(current)
            current = indent + word
        else:
            current += blanks + word
    return "\n".join([*lines, current])


def _fit_table(table: Table, width: int) -> tuple[Table, set[str]]:
    """A table that fits, if possible, and the headings of the columns that it leaves out."""
    left_out: set[str] = set()
    for heading in table.drop:
        if width_of(_fold_cells(table, _LONGEST_WORDS)) <= width:
            break
        left_out.add(heading)
        table = table.without(heading)
    sizes = range(_LONGEST_WORDS, _SHORTEST_WORDS, -2)
    tries = (_fold_cells(table, most) for most in sizes)
    fitted = next((attempt for attempt in tries if width_of(attempt) <= width), None)
    if fitted is not None:
        return fitted, left_out
    for heading in table.columns[: table.left : -1]:
        if width_of(_narrowed(table)) <= width:
            break
        left_out.add(heading)
        table = table.without(heading)
    return _narrowed(table), left_out


def _narrowed(table: Table) -> Table:
    """A table that is as narrow as possible: numbers and headings continue on further lines, too."""
    folded = _fold_cells(table, _SHORTEST_WORDS)
    rows = [["\n".join(map(_fold_words, cell.split("\n"))) for cell in row] for row in (folded.columns, *folded.rows)]
    return replace(folded, columns=rows[0], rows=rows[1:], gap=1)


def _fold_words(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _SHORTEST_WORDS + 2, break_long_words=False, break_on_hyphens=False))


def _fold_cells(table: Table, most: int) -> Table:
    """A table whose text cells, and headings with options, continue on further lines."""
    columns = [_fold_heading(heading) for heading in table.columns]
    worded = set(table.text_columns())
    rows = [
        ["\n".join(pieces(cell, most)) if place in worded else cell for place, cell in enumerate(row)]
        for row in table.rows
    ]
    return replace(table, columns=columns, rows=rows)


def _fold_heading(heading: str) -> str:
    """A heading, in two lines if it has options in brackets.

    >>> _fold_heading("ContextRelevance(judge=lexical)@5")
    'ContextRelevance\\n(judge=lexical)@5'
    """
    name, bracket, options = heading.partition("(")
    return f"{name.rstrip()}\n({options}" if bracket and name else heading
