"""How a wide table is laid out where it is read: whole in a file or a pipe, in blocks in a terminal."""

import shutil
import sys
from collections.abc import Sequence

GAP = 3
"""Blanks between two columns."""


def terminal_width() -> int | None:
    """Letters of a line of the attached terminal; None where the output goes elsewhere, and must not be folded."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()  # None where a daemon has closed it
    return shutil.get_terminal_size().columns if is_terminal else None


def blocks(widths: Sequence[int], room: int) -> list[list[int]]:
    """Positions of columns, in as few blocks as fit; the first column stands in all of them.

    Args:
        widths: of the columns.
        room: letters of a line; a block of two columns may be wider.

    >>> blocks([10, 20, 20, 20], 56)
    [[0, 1, 2], [0, 3]]
    >>> blocks([10, 90, 5], 40), blocks([10], 40)
    ([[0, 1], [0, 2]], [[0]])
    """
    parts = [[0]]
    taken = widths[0]
    for place, width in enumerate(widths[1:], start=1):
        if taken + GAP + width > room and len(parts[-1]) > 1:
            parts.append([0])
            taken = widths[0]
        parts[-1].append(place)
        taken += GAP + width
    return parts


def folded(heading: str) -> str:
    """A heading in two lines, where it has options in brackets.

    >>> folded("ContextRelevance(judge=lexical)@5")
    'ContextRelevance\\n(judge=lexical)@5'
    """
    name, bracket, options = heading.partition("(")
    return f"{name}\n({options}" if bracket and name else heading
