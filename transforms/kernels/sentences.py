"""Sentences of a text, by marks and line ends: no model, no list of abbreviations."""

import re

# A mark ends a sentence before white space, but not behind a single letter or "e.g", and not before a small letter.
_END = re.compile(r"(?<!\b\w)(?<!\b\w\.\w)[.!?…]+[\"'”’)\]]*(?=\s+[^a-z\s]|\s*$)|[。！？]+|(?=\n)")


def sentences(text: str) -> list[tuple[int, int]]:
    """The span of each sentence: [start, end) in code points, without surrounding white space.

    >>> text = "It costs 3.50 euros, e.g. monthly. Why?\\nNobody knows"
    >>> [text[start:end] for start, end in sentences(text)]
    ['It costs 3.50 euros, e.g. monthly.', 'Why?', 'Nobody knows']
    """
    ends = sorted({*(match.end() for match in _END.finditer(text)), len(text)})
    spans = zip([0, *ends], ends, strict=False)
    return [trimmed for start, end in spans if (trimmed := _trimmed(text, start, end)) is not None]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    part = text[start:end]
    stripped = part.strip()
    first = start + len(part) - len(part.lstrip())
    return (first, first + len(stripped)) if stripped else None
