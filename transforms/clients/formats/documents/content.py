"""The content of a document's file, and files without any."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

NO_TEXT = "no text"
LOCKED = "password-protected"
DAMAGED = "damaged, or not of the format that its suffix names"
TOO_LARGE = "too large"

_SAME_BLOCK = ("item", "row")
"""Kinds of lines that follow each other without a blank line."""


class UnreadableError(ValueError):
    """Raised for a file without text that can be read; its text is the reason, the same for all such files."""


@dataclass(frozen=True)
class Content:
    """Text of a file; its title is empty where the file names none."""

    title: str
    text: str
    attributes: Mapping[str, str] = field(default_factory=dict)


def heading(level: int, text: str) -> tuple[str, str]:
    """A heading as a block of Markdown."""
    return "heading", f"{'#' * level} {text}"


def item(text: str) -> tuple[str, str]:
    """An item of a list as a block of Markdown."""
    return "item", f"- {text}"


def code(text: str) -> tuple[str, str]:
    """Code as a block of Markdown."""
    return "code", f"```\n{text}\n```"


def row(cells: Iterable[str], *, is_first: bool) -> tuple[str, str]:
    """A row of a table as a block of Markdown.

    >>> row(["a", "b|c"], is_first=True)[1]
    '| a | b\\\\|c |\\n| --- | --- |'
    """
    escaped = [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
    below = f"\n|{' --- |' * len(escaped)}" if is_first else ""
    return "row", f"| {' | '.join(escaped)} |{below}"


def joined(blocks: Iterable[tuple[str, str]]) -> str:
    """The text of blocks, with blank lines between all but neighbouring items and rows."""
    text, before = "", ""
    for kind, block in blocks:
        starts_table = kind == "row" and "\n" in block
        is_same = kind == before and kind in _SAME_BLOCK and not starts_table
        text += f"{'' if not text else chr(10) if is_same else chr(10) * 2}{block}"
        before = kind
    return text
