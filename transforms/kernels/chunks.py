"""Chunks of a text: runs of whole words, sentences, paragraphs or sections, as spans of code points.

    text ──► units (words, sentences, …) ──► each unit's place on a scale ──► windows of units ──► spans

The scale is what a size counts: words, or code points. A window takes units as long as their extent on the scale is
within the size; the next window begins at the earliest unit that keeps the overlap within what is asked.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal, get_args

from rankbeam.transforms.kernels.sentences import sentences

By = Literal["words", "tokens", "characters", "sentences", "paragraphs", "headings"]
CHUNKERS: tuple[By, ...] = get_args(By)

Span = tuple[int, int]

# Han, Hiragana and Katakana are written without blanks: each character counts as a word, as in UAX #29.
_IDEOGRAPHS = "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]+")
_ASCII_WORD = re.compile(r"\S+")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_LINE = re.compile(r"[^\n]*\n?")
_HEADING = re.compile(r"#{1,6}(\s|$)")
_UNDERLINE = re.compile(r"(=+|-{3,})\s*$")
_FENCE = re.compile(r"\s*(```|~~~)")

CODE_POINTS_PER_TOKEN = 4
"""A token is taken to have four code points, the average of English text in the vocabularies of language models."""


def chunk_spans(text: str, by: By, size: int, overlap: int) -> list[Span]:
    """Where the chunks of a text stand.

    Args:
        text: any text.
        by: the unit that chunks consist of. `words` are separated by white space; an ideograph is a word. `tokens` and
            `characters` count ceil(code points / 4) and code points, and cut between words, or anywhere in a word that
            is longer than a chunk. `sentences`, `paragraphs` (separated by blank lines) and `headings` (sections of
            Markdown) are never cut: one that is longer than a chunk is a chunk of its own.
        size: the most words, tokens or characters of a chunk; words for sentences, paragraphs and headings.
        overlap: the most that a chunk repeats of the one before it, in the same unit; less than `size`.

    Returns:
        Each chunk's [start, end) in code points, in order, without white space around it; none for a blank text.

    >>> text = "One two three four. Five six!"
    >>> [text[start:end] for start, end in chunk_spans(text, "words", 4, 1)]
    ['One two three four.', 'four. Five six!']
    >>> [text[start:end] for start, end in chunk_spans(text, "sentences", 4, 1)]
    ['One two three four.', 'Five six!']
    >>> [text[start:end] for start, end in chunk_spans(text, "tokens", 3, 0)]
    ['One two', 'three four.', 'Five six!']
    """
    if not 0 <= overlap < size:
        raise ValueError(f"an overlap of {overlap} is not less than a size of {size}")
    if by == "words":
        spans = words(text)
        begins: Sequence[int] = range(len(spans))
        ends: Sequence[int] = range(1, len(spans) + 1)
    elif by in ("tokens", "characters"):
        scale = CODE_POINTS_PER_TOKEN if by == "tokens" else 1
        size, overlap = size * scale, overlap * scale
        spans = _short_words(text, size)
        begins, ends = [start for start, _ in spans], [end for _, end in spans]
    else:
        spans = {"sentences": sentences, "paragraphs": paragraphs, "headings": sections}[by](text)
        counts = [0, *accumulate(len(words(text[start:end])) for start, end in spans)]
        begins, ends = counts[:-1], counts[1:]
    return [(spans[first][0], spans[last - 1][1]) for first, last in _windows(begins, ends, size, overlap)]


def words(text: str) -> list[Span]:
    """Where the words stand: what white space separates, and each ideograph.

    >>> words("a  bc 日本")
    [(0, 1), (3, 5), (6, 7), (7, 8)]
    """
    return [match.span() for match in (_ASCII_WORD if text.isascii() else _WORD).finditer(text)]


def paragraphs(text: str) -> list[Span]:
    """Where the paragraphs stand, which blank lines separate.

    >>> paragraphs("a\\nb\\n \\n\\nc\\n")
    [(0, 3), (7, 8)]
    """
    return _parts(text, [match.end() for match in _BLANK_LINES.finditer(text)])


def sections(text: str) -> list[Span]:
    """Where the sections of a Markdown text stand, each with its heading, and what precedes the first heading.

    Headings begin with one to six `#`, or are underlined by `=` or `---`; lines of fenced code are none.

    >>> sections("intro\\n# A\\ntext\\nB\\n===\\n")
    [(0, 5), (6, 14), (15, 20)]
    """
    return _parts(text, list(_heading_starts(text)))


def _parts(text: str, starts: Sequence[int]) -> list[Span]:
    """What stands before the first start, and from each to the next, without white space around it."""
    parts = ((start, text[start:end]) for start, end in zip([0, *starts], [*starts, len(text)], strict=True))
    return [
        (start + len(part) - len(part.lstrip()), start + len(part.rstrip())) for start, part in parts if part.strip()
    ]


def _heading_starts(text: str) -> Iterator[int]:
    previous, is_code = None, False
    for match in _LINE.finditer(text):
        line = match[0]
        if _FENCE.match(line):
            is_code = not is_code
            previous = None
        elif not is_code and _HEADING.match(line):
            yield match.start()
            previous = None
        elif not is_code and previous is not None and _UNDERLINE.match(line):
            yield previous
            previous = None
        else:
            previous = match.start() if line.strip() else None


def _short_words(text: str, longest: int) -> list[Span]:
    """The words; one that is longer than a chunk may be cut anywhere, so each of its characters is a unit."""
    spans = words(text)
    if all(end - start <= longest for start, end in spans):
        return spans
    pieces = ([(start, end)] if end - start <= longest else _characters(start, end) for start, end in spans)
    return [piece for word in pieces for piece in word]


def _characters(start: int, end: int) -> list[Span]:
    return [(position, position + 1) for position in range(start, end)]


def _windows(begins: Sequence[int], ends: Sequence[int], size: int, overlap: int) -> Iterator[Span]:
    """Windows of whole units, [first, last), each at most `size` long on a scale, or one unit.

    Args:
        begins: where each unit begins on the scale, ascending.
        ends: where each unit ends on the scale, ascending.
        size: the longest extent of a window, from the beginning of its first unit to the end of its last.
        overlap: the longest extent of what two neighbours share. They share less where else the next unit, which the
            later one must hold, did not fit.
    """
    first, count = 0, len(begins)
    while first < count:
        last = max(first + 1, bisect_right(ends, begins[first] + size))
        yield first, last
        if last == count:
            return
        earliest = max(ends[last - 1] - overlap, ends[last] - size)
        first = min(bisect_left(begins, earliest, lo=first + 1), last)
