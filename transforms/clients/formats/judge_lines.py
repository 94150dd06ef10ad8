"""Lines of a judge in files of judgements: `llm` as the source of a line, in BEIR's fourth or TREC's second column."""

import re
from collections.abc import Iterator

from rankbeam.transforms.clients.formats.recognise import Format, recognise
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

_LINES = {
    Format.SOURCED_QRELS: re.compile(rb"^(?:[^\t\n]*\t){3}[ ]*llm[ ]*\r?$", re.MULTILINE | re.IGNORECASE),
    Format.TREC_QRELS: re.compile(rb"^[ \t]*\S+[ \t]+llm[ \t]", re.MULTILINE | re.IGNORECASE),
}
"""The beginning, or the whole, of a line of a judge, by format; other formats name no source."""


def count(path: str) -> int:
    """The number of lines of a judge in one file."""
    return sum(len(places) for _, places in _blocks(path))


def refuse(path: str) -> None:
    """Refuse a file with lines of a judge where people's judgements are needed."""
    seen = 0
    for block, places in _blocks(path):
        if places:
            problem = "has grades of a judge already; fill the holes of a run with the judgements of people"
            raise InputError(problem, path=path, line=seen + block.count(b"\n", 0, places[0]) + 1)
        seen += block.count(b"\n")


def _blocks(path: str) -> Iterator[tuple[bytes, list[int]]]:
    """Blocks of whole lines, with the positions of the lines of a judge."""
    pattern = _LINES.get(recognise(path, "qrels"))
    for block in files.read_blocks(path) if pattern is not None else ():
        yield block, [match.start() for match in pattern.finditer(block)] if pattern is not None else []
