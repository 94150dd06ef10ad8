"""Locate the text of a chunk in its document, for services that return texts without positions."""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rankbeam.transforms.kernels.arrays import IntArray

_LEAST_FIFTHS = 4  # fifths of a chunk that the document must contain in one piece, unless it contains all of the chunk

_BLANKS = re.compile(r"\s+")


class FoldedText(NamedTuple):
    """A text with every run of white space as one blank, and without white space at its ends."""

    text: str
    place: IntArray  # int64[len(text)], position of each of its characters in the original text


@lru_cache(maxsize=64)  # many chunks of one document are located together
def fold_whitespace(text: str) -> FoldedText:
    r"""Fold the white space of a text.

    >>> fold_whitespace(" a\n b")
    FoldedText(text='a b', place=array([1, 2, 4]))
    """
    place = np.arange(len(text))
    is_kept = np.ones(len(text), bool)
    pieces, last = [], 0
    for match in _BLANKS.finditer(text):
        start, end = match.span()
        outside = start == 0 or end == len(text)
        pieces += [text[last:start], "" if outside else " "]
        is_kept[start if outside else start + 1 : end] = False
        last = end
    return FoldedText("".join([*pieces, text[last:]]), place[is_kept])


def locate_chunk(chunk: str, document: str) -> tuple[int, int] | None:
    """The span of a document that a chunk's text comes from; the first one if the document repeats it.

    The search is for the text itself, then for the text with its white space folded, and finally for the longest piece
    that chunk and document share, if that is at least four fifths of the chunk.

    Returns:
        Start and end in code points; None if there is no match.

    >>> locate_chunk("b c", "a b  c d"), locate_chunk("b x", "a b  c d")
    ((2, 6), None)
    """
    if not chunk.strip():
        return None
    if (start := document.find(chunk)) >= 0:
        return start, start + len(chunk)
    within, piece = fold_whitespace(document), fold_whitespace(chunk).text
    start, end = _longest_shared(piece, within.text)
    return None if start == end else (int(within.place[start]), int(within.place[end - 1]) + 1)


def locate_after(prefix: int, chunk: str, document: str) -> tuple[int, int] | None:
    r"""The span of a document's text that a chunk is taken from; the chunk may begin with what precedes the text.

    Args:
        prefix: length of the title and line break that precede the text.
        chunk: its text.
        document: prefix and text.

    Returns:
        Start and end in code points of the text; None if there is no match.

    >>> locate_after(6, "Title\nbo", "Title\nbody"), locate_after(6, "dy", "Title\nbody")
    ((0, 2), (2, 4))
    """
    text = document[prefix:]
    begins_before = chunk not in text and chunk in document
    place = None if begins_before else locate_chunk(chunk, text)
    if place is not None or not prefix:
        return place
    place = locate_chunk(chunk, document)
    return None if place is None else (max(0, place[0] - prefix), max(0, place[1] - prefix))


def _longest_shared(piece: str, text: str) -> tuple[int, int]:
    """The longest span of a text that is part of a piece, if it covers enough of the piece; else an empty one.

    Such a span holds the middle of the piece, wherever it begins: only occurrences of the middle are examined.
    """
    least = -(-_LEAST_FIFTHS * len(piece) // 5)
    middle_start, middle_end = len(piece) - least, least
    middle = piece[middle_start:middle_end]
    best, position = (0, 0), text.find(middle)
    while position >= 0:
        start, before = position, middle_start
        while start and before and text[start - 1] == piece[before - 1]:
            start, before = start - 1, before - 1
        end, after = position + len(middle), middle_end
        while end < len(text) and after < len(piece) and text[end] == piece[after]:
            end, after = end + 1, after + 1
        best = max(best, (start, end), key=lambda span: span[1] - span[0])
        position = text.find(middle, position + 1)
    return best if best[1] - best[0] >= least else (0, 0)
