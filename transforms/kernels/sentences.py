"""Sentences of a text, by marks and line ends: no model, no list of abbreviations."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

# A mark ends a sentence before white space, but not behind a single letter or "e.g", and not before a small letter.
# Texts may be hostile, so no mark is tried twice: a match at the third of a row would end where one at the second does.
_END = re.compile(r"(?<!\b\w)(?<!\b\w\.\w)(?<![.!?…]{2})[.!?…]++[\"'”’)\]]*+(?=\s++[^a-z\s]|\s*+$)|[。！？]+|(?=\n)")

_MARK = re.compile(r"[.!?…。！？\n]")
"""The character before which `_END` can match: looking for it first takes a third of the time."""


def sentences(text: str) -> list[tuple[int, int]]:
    """The span of each sentence: [start, end) in code points, without surrounding white space.

    >>> text = "It costs 3.50 euros, e.g. monthly. Why?\\nNobody knows"
    >>> [text[start:end] for start, end in sentences(text)]
    ['It costs 3.50 euros, e.g. monthly.', 'Why?', 'Nobody knows']
    """
    return trimmed_parts(text, list(_ends(text)))


def trimmed_parts(text: str, starts: Sequence[int]) -> list[tuple[int, int]]:
    """The spans between starts, and before the first one, without white space around them.

    >>> trimmed_parts(" a b  c ", [4, 5])
    [(1, 4), (6, 7)]
    """
    parts = ((start, text[start:end]) for start, end in zip([0, *starts], [*starts, len(text)], strict=True))
    return [
        (start + len(part) - len(part.lstrip()), start + len(part.rstrip())) for start, part in parts if part.strip()
    ]


def _ends(text: str) -> Iterator[int]:
    done = 0
    for mark in _MARK.finditer(text):
        if mark.start() >= done and (match := _END.match(text, mark.start())) is not None:
            done = match.end()
            yield done


def parts_of(text: str, most_sentences: int | None = None, most_letters: int | None = None) -> list[str]:
    """The text in consecutive parts of whole sentences; only a sentence that is too long alone is cut.

    >>> parts_of("One is. Two are. Three were.", most_sentences=2), parts_of("Some words", most_letters=6)
    (['One is. Two are. ', 'Three were.'], ['Some ', 'words'])
    """
    starts = [start for start, _ in sentences(text)][1:]
    edges = [0]
    for start, end in zip([0, *starts], [*starts, len(text)], strict=True):
        while most_letters is not None and end - edges[-1] > most_letters and start == edges[-1]:
            space = text.rfind(" ", start, start + most_letters)
            start = start + most_letters if space <= start else space + 1
            edges.append(start)
        edges.append(end)
    parts: list[str] = []
    count = 0
    for start, end in pairwise(edges):
        is_full = most_sentences is not None and count >= most_sentences
        is_long = most_letters is not None and bool(parts) and len(parts[-1]) + end - start > most_letters
        if not parts or is_full or is_long:
            parts, count = [*parts, text[start:end]], 1
        else:
            parts[-1], count = parts[-1] + text[start:end], count + 1
    return parts
