"""The screen: in a narrow terminal tables leave columns out and sentences wrap; a pipe gets everything whole."""

import re
import shutil
import sys
from dataclasses import dataclass, replace

from rankbeam.pipelines.show.tabular import Table, lines_of, pieces, width_of

_LONGEST_WORDS, _SHORTEST_WORDS = 30, 8
"""Letters of a cell of words in a table that is too wide: longer cells go on in further lines."""

_LEFT_OUT = "Left out to fit {} characters: {}. --wide shows all columns."


@dataclass(frozen=True)
class Screen:
    """Screen that shows text."""

    width: int | None = None  # letters of a line of a terminal; None if nothing is to be wrapped or left out
    wide: bool = False

    @classmethod
    def of(cls, stream: object = None, *, wide: bool = False) -> "Screen":
        """The terminal behind a stream, standard output by default; no limit where it is a file or a pipe."""
        stream = sys.stdout if stream is None else stream  # None as well where a daemon has closed it
        is_terminal = getattr(stream, "isatty", lambda: False)()
        return cls(shutil.get_terminal_size().columns if is_terminal else None, wide)

    def table(self, table: Table) -> str:
        """A table; where it is too wide, columns of its `drop` are left out, which a sentence says."""
        table = table.printable()
        if self.width is None:
            return "\n".join(lines_of(table))
        if self.wide or width_of(table) <= self.width:
            return "\n".join(lines_of(table, strong=True))
        fitted, left_out = _fitted(table, self.width)
        lines = lines_of(fitted, strong=True)
        if left_out:
            names = ", ".join(heading for heading in table.columns if heading in left_out)
            lines.append(self.prose(_LEFT_OUT.format(self.width, names)))
        return "\n".join(lines)

    def prose(self, text: str, indent: str = "") -> str:
        """Sentences, wrapped at blanks; words that are longer than a line, such as paths, stay whole.

        >>> Screen(20).prose("the best with 95% confidence")
        'the best with 95%\\nconfidence'
        >>> Screen(20).prose("answer   In Frankfurt, so far", indent=" " * 9)
        'answer   In\\n         Frankfurt,\\n         so far'
        """
        if self.width is None:
            return text
        return "\n".join(_wrapped(line, self.width, indent) for line in text.split("\n"))


WHOLE = Screen()
"""A file or a pipe."""


def _wrapped(line: str, width: int, indent: str) -> str:
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


def _fitted(table: Table, width: int) -> tuple[Table, set[str]]:
    """A table that fits, if that is possible, and the headings of the columns that it leaves out."""
    left_out: set[str] = set()
    for heading in table.drop:
        if width_of(_folded(table, _LONGEST_WORDS)) <= width:
            break
        left_out.add(heading)
        table = table.without(heading)
    sizes = range(_LONGEST_WORDS, _SHORTEST_WORDS, -2)
    tries = (_folded(table, most) for most in sizes)
    fitted = next((attempt for attempt in tries if width_of(attempt) <= width), _folded(table, _SHORTEST_WORDS))
    return fitted, left_out


def _folded(table: Table, most: int) -> Table:
    """A table whose cells of words, and headings with options, go on in further lines."""
    columns = [_heading(heading) for heading in table.columns]
    worded = set(table.worded())
    rows = [
        ["\n".join(pieces(cell, most)) if place in worded else cell for place, cell in enumerate(row)]
        for row in table.rows
    ]
    return replace(table, columns=columns, rows=rows)


def _heading(heading: str) -> str:
    """A heading in two lines, where it has options in brackets.

    >>> _heading("ContextRelevance(judge=lexical)@5")
    'ContextRelevance\\n(judge=lexical)@5'
    """
    name, bracket, options = heading.partition("(")
    return f"{name.rstrip()}\n({options}" if bracket and name else heading
