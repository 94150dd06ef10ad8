"""Chunks of a text: runs of whole words, sentences, paragraphs or sections, as spans of code points.

    text ──► units (words, sentences, …) ──► each unit's position on a scale ──► windows of units ──► spans

The scale is what a size counts: words, or code points. A window takes units as long as their extent on the scale is
within the size; the next window begins at the earliest unit that keeps the overlap within its limit.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Literal, get_args

from rankbeam.transforms.kernels.blocks import FENCE, LINE, Span, closes, kept_whole, whole_graphemes
from rankbeam.transforms.kernels.sentences import sentences, trimmed_parts

By = Literal["words", "tokens", "characters", "sentences", "paragraphs", "headings", "recursive"]
CHUNKERS: tuple[By, ...] = get_args(By)

# Han, Hiragana and Katakana are written without blanks: each character counts as a word, as in UAX #29.
_IDEOGRAPHS = "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]+")
_ASCII_WORD = re.compile(r"\S+")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_HEADING = re.compile(r"#{1,6}(\s|$)")
_UNDERLINE = re.compile(r"(=+|-{3,})\s*$")

CODE_POINTS_PER_TOKEN = 4
"""A token is taken to have four code points, the average of English text, so that budgets of models are comparable."""


def chunk_spans(
    text: str, by: By, size: int, overlap: int, *, splits: bool = False, intact: bool = False
) -> list[Span]:
    """The spans of a text's chunks.

    Args:
        text: any text.
        by: the unit that chunks consist of. `words` are separated by white space; an ideograph is a word. `tokens` and
            `characters` count ceil(code points / 4) and code points, and cut between words, or between any graphemes
            of a word that is longer than a chunk. `sentences`, `paragraphs` (separated by blank lines) and `headings`
            (sections of Markdown) are never cut: one that is longer than a chunk is a chunk of its own. `recursive`
            counts tokens, and ends each chunk at the highest boundary that fits: of a paragraph, a line, a sentence, a
            word, a character.
        size: the most words, tokens or characters of a chunk; words for sentences, paragraphs and headings.
        overlap: the most that a chunk repeats of the previous one, in the same unit; less than `size`.
        splits: True to cut sentences, paragraphs and headings that are longer than a chunk, at the boundaries of the
            next smaller units that fit: paragraphs, sentences, words.
        intact: True to cut no table and no block of code of Markdown that fits into a chunk.

    Returns:
        Each chunk's [start, end) in code points, in order, without white space around it; no spans for a blank text. No
        chunk begins or ends inside a grapheme; one that is longer than a chunk is a chunk of its own.

    >>> text = "One two three four. Five six!"
    >>> [text[start:end] for start, end in chunk_spans(text, "words", 4, 1)]
    ['One two three four.', 'four. Five six!']
    >>> [text[start:end] for start, end in chunk_spans(text, "sentences", 4, 1)]
    ['One two three four.', 'Five six!']
    >>> [text[start:end] for start, end in chunk_spans(text, "tokens", 3, 0)]
    ['One two', 'three four.', 'Five six!']
    >>> [text[start:end] for start, end in chunk_spans(text, "sentences", 3, 0, splits=True)]
    ['One two three', 'four. Five six!']
    """
    if not 0 <= overlap < size:
        raise ValueError(f"an overlap of {overlap} is not less than a size of {size}")
    if by == "recursive":
        return _recursive(text, size * CODE_POINTS_PER_TOKEN, overlap * CODE_POINTS_PER_TOKEN, intact=intact)
    if by == "words" and not intact:
        spans = whole_graphemes(text, words(text))
        begins: Sequence[int] = range(len(spans))
        ends: Sequence[int] = range(1, len(spans) + 1)
    elif by in ("tokens", "characters"):
        scale = CODE_POINTS_PER_TOKEN if by == "tokens" else 1
        size, overlap = size * scale, overlap * scale
        spans = whole_graphemes(text, _short_words(text, size))
        spans = kept_whole(text, spans, lambda start, end: end - start <= size) if intact else spans
        begins, ends = [start for start, _ in spans], [end for _, end in spans]
    else:
        units = list(_UNITS)
        spans = _UNITS.get(by, words)(text)
        if splits and by in _UNITS:
            finer = [_UNITS[unit] for unit in units[units.index(by) + 1 :]]
            spans = [part for span in spans for part in _split(text, span, size, [*finer, words])]
        spans = whole_graphemes(text, spans)
        length = _length_in_words(text, spans if by == "words" else None)
        spans = kept_whole(text, spans, lambda start, end: length(start, end) <= size) if intact else spans
        counts = [0, *accumulate(length(start, end) for start, end in spans)]
        begins, ends = counts[:-1], counts[1:]
    return [(spans[first][0], spans[last - 1][1]) for first, last in windows(begins, ends, size, overlap)]


def _length_in_words(text: str, counted: Sequence[Span] | None) -> Callable[[int, int], int]:
    """Return a function that counts the words between two positions of a text, from its words if they are known."""
    if counted is None:
        return lambda start, end: len(words(text[start:end]))
    starts = [start for start, _ in counted]
    return lambda start, end: bisect_left(starts, end) - bisect_left(starts, start)


def words(text: str) -> list[Span]:
    """The spans of words, which white space separates, and of each ideograph.

    >>> words("a  bc 日本")
    [(0, 1), (3, 5), (6, 7), (7, 8)]
    """
    return [match.span() for match in (_ASCII_WORD if text.isascii() else _WORD).finditer(text)]


def paragraphs(text: str) -> list[Span]:
    """The spans of paragraphs, which blank lines separate.

    >>> paragraphs("a\\nb\\n \\n\\nc\\n")
    [(0, 3), (7, 8)]
    """
    return trimmed_parts(text, [match.end() for match in _BLANK_LINES.finditer(text)])


def sections(text: str) -> list[Span]:
    """The spans of a Markdown text's sections with their headings, and of the text before the first heading.

    Headings begin with one to six `#`, or are underlined by `=` or `---`; lines of fenced code are not headings.

    >>> sections("intro\\n# A\\ntext\\nB\\n===\\n")
    [(0, 5), (6, 14), (15, 20)]
    """
    return trimmed_parts(text, list(_heading_starts(text)))


_UNITS: Mapping[str, Callable[[str], list[Span]]] = {
    "headings": sections,
    "paragraphs": paragraphs,
    "sentences": sentences,
}
"""Units that chunks consist of, from large to small."""


def _split(text: str, span: Span, size: int, finer: Sequence[Callable[[str], list[Span]]]) -> list[Span]:
    """A unit, or its smaller units if it has more than `size` words."""
    start, end = span
    if not finer or len(words(text[start:end])) <= size:
        return [span]
    parts = [(start + begin, start + stop) for begin, stop in finer[0](text[start:end])]
    return [piece for part in parts for piece in _split(text, part, size, finer[1:])]


def _heading_starts(text: str) -> Iterator[int]:
    previous, fence = None, ""
    for match in LINE.finditer(text):
        line = match[0]
        if fence:
            fence = "" if closes(line, fence) else fence
        elif opened := FENCE.match(line):
            previous, fence = None, opened[1]
        elif _HEADING.match(line):
            yield match.start()
            previous = None
        elif previous is not None and _UNDERLINE.match(line):
            yield previous
            previous = None
        else:
            previous = match.start() if line.strip() else None


def _short_words(text: str, longest: int) -> list[Span]:
    """The words; one that is longer than a chunk may be cut anywhere, so each of its characters is a unit."""
    spans = words(text)
    if all(end - start <= longest for start, end in spans):
        return spans
    return [
        piece
        for start, end in spans
        for piece in ([(start, end)] if end - start <= longest else pairwise(range(start, end + 1)))
    ]


def _recursive(text: str, size: int, overlap: int, *, intact: bool) -> list[Span]:
    """Chunks of at most `size` code points that end at the highest boundary that fits, as late as possible.

    A chunk repeats whole sentences of the previous one; within a sentence that is longer than a chunk, words.
    """
    units = whole_graphemes(text, _short_words(text, size))
    units = kept_whole(text, units, lambda start, end: end - start <= size) if intact else units
    levels = _levels(text, units)
    begins, ends = [start for start, _ in units], [end for _, end in units]
    spans: list[Span] = []
    first = last = 0
    while last < len(units):
        most = max(last + 1, bisect_right(ends, begins[first] + size))
        last = len(units) if most >= len(units) else _highest(levels, last + 1, most)
        spans.append((begins[first], ends[last - 1]))
        if last < len(units):
            after = next((unit for unit in range(last + 1, len(units)) if levels[unit] <= _SENTENCE), len(units))
            is_whole = ends[after - 1] - begins[last] <= size  # the next sentence must still fit beside the overlap
            earliest = max(ends[last - 1] - overlap, ends[after - 1 if is_whole else last] - size)
            shared = range(min(bisect_left(begins, earliest, lo=first + 1), last), last)
            words_only = shared[0] if shared and levels[last] > _SENTENCE else last
            first = next((unit for unit in shared if levels[unit] <= _SENTENCE), words_only)
    return spans


_SENTENCE, _WORD_BOUNDARY, _CHARACTER = 2, 3, 4  # levels of boundaries; paragraphs have 0, and lines 1


def _highest(levels: Sequence[int], least: int, most: int) -> int:
    """The latest boundary of the highest level (the lowest number) from `least` to `most`."""
    backwards = levels[least : most + 1][::-1]
    return most - backwards.index(min(backwards))


def _levels(text: str, units: Sequence[Span]) -> list[int]:
    """The level of the boundary before each unit."""
    starts = {start for start, _ in sentences(text)}
    levels, before = [], 0
    for start, end in units:
        lines = 0 if text[before:start] == " " else text.count("\n", before, start)
        if lines or start in starts:
            levels.append(_SENTENCE - min(lines, 2))
        else:
            levels.append(_CHARACTER if start == before else _WORD_BOUNDARY)
        before = end
    return levels


def windows(
    begins: Sequence[int],
    ends: Sequence[int],
    size: int,
    overlap: int,
    fits: Callable[[int, int], bool] = lambda *_: True,
) -> Iterator[Span]:
    """Windows of whole units, [first, last), each at most `size` long on a scale, or one unit.

    Args:
        begins: the beginning of each unit on the scale, ascending.
        ends: the end of each unit on the scale, ascending.
        size: the longest extent of a window, from the beginning of its first unit to the end of its last.
        overlap: the longest extent that two neighbours share. They share less if the next unit, which the later window
            must hold, would not fit otherwise.
        fits: returns whether units, [first, last), are one chunk; the scale may only estimate it.
    """
    first, done, count = 0, 0, len(begins)
    while first < count:
        last = max(first + 1, bisect_right(ends, begins[first] + size))
        while last > first + 1 and not fits(first, last):
            last -= 1
        if last <= done:  # with so much overlap, it holds nothing new
            first += 1
            continue
        yield first, last
        done = last
        if last == count:
            return
        earliest = max(ends[last - 1] - overlap, ends[last] - size)
        first = min(bisect_left(begins, earliest, lo=first + 1), last)
