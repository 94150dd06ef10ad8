"""Postings: for each term, the units (documents or chunks) that hold it, and how often.

Terms are numbered in the order of their bytes and units by the caller, and the postings of a term ascend by unit: so
nothing depends on the order in which documents were read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.kernels.arrays import IntArray, concatenated_ranges, stable_order

TOKENS_AT_ONCE = 1 << 20
UnitArray = npt.NDArray[np.int32]
CountArray = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Postings:
    """For each of t terms, its postings."""

    offsets: IntArray  # int64[t + 1]; term i has the postings from offsets[i] to offsets[i + 1]
    unit: UnitArray  # int32[n], the unit of each posting
    count: CountArray  # int32[n], how often the unit has the term
    length: CountArray  # int32[u], tokens of each unit

    def of(self, term: int) -> tuple[UnitArray, CountArray]:
        first, last = self.offsets[term], self.offsets[term + 1]
        return self.unit[first:last], self.count[first:last]

    @property
    def frequency(self) -> IntArray:
        """int64[t], the number of units with each term."""
        return np.diff(self.offsets)

    def blocks(self, size: int) -> Iterator[tuple[slice, IntArray]]:
        """The postings in blocks, with the term of each.

        Args:
            size: most rows in a block.
        """
        for first in range(0, len(self.unit), size):
            rows = slice(first, min(first + size, len(self.unit)))
            yield rows, np.searchsorted(self.offsets, np.arange(rows.start, rows.stop), side="right") - 1


def build(
    terms: int, length: IntArray, tokens: Callable[[int, int], IntArray], at_once: int = TOKENS_AT_ONCE
) -> Postings:
    """The postings of units.

    Args:
        terms: number of distinct terms.
        length: int64[u], tokens of each unit.
        tokens: returns the terms of the tokens in a range of units, unit by unit.
        at_once: tokens that are in memory at once; more if one unit has more.

    >>> postings = build(3, np.array([2, 1]), lambda first, last: np.array([[2, 2], [0]][first]), at_once=1)
    >>> postings.offsets.tolist(), postings.unit.tolist(), postings.count.tolist()
    ([0, 1, 1, 2], [1, 0], [1, 2])
    """
    blocks = []
    frequency = np.zeros(terms, np.int64)
    for first, last in _ranges(length, at_once):
        block = _block(tokens(first, last), first, length[first:last], terms)
        frequency[block.term] += block.frequency
        blocks.append(block)
    offsets = np.concatenate([[0], np.cumsum(frequency)])
    unit, count = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)
    next_row = offsets[:-1].copy()
    for block in blocks:
        place = concatenated_ranges(next_row[block.term], block.frequency)
        unit[place], count[place] = block.unit, block.count
        next_row[block.term] += block.frequency
    return Postings(offsets, unit, count, length.astype(np.int32))


@dataclass(frozen=True)
class _Block:
    """Postings of some units, by term: the terms that occur, ascending, and the number of units with each."""

    term: IntArray
    frequency: IntArray
    unit: UnitArray
    count: CountArray


def _block(tokens: IntArray, first: int, length: IntArray, terms: int) -> _Block:
    order = stable_order(tokens, terms)
    term = tokens[order]
    unit = np.repeat(np.arange(first, first + len(length)), length)[order]
    is_new = np.ones(len(term), bool)
    is_new[1:] = (term[1:] != term[:-1]) | (unit[1:] != unit[:-1])
    begin = np.flatnonzero(is_new)
    count = np.diff(np.append(begin, len(term)))
    frequency = np.bincount(term[begin], minlength=terms)
    present = np.flatnonzero(frequency)
    return _Block(present, frequency[present], unit[begin].astype(np.int32), count.astype(np.int32))


def _ranges(length: IntArray, at_once: int) -> Iterator[tuple[int, int]]:
    """Ranges of units with at most this many tokens together, or one unit."""
    ends = np.cumsum(length)
    first, done = 0, 0
    while first < len(length):
        last = max(first + 1, int(np.searchsorted(ends, done + at_once, side="right")))
        yield first, last
        first, done = last, int(ends[last - 1])


def within(
    start: IntArray, document: IntArray, first: IntArray, last: IntArray, of: IntArray
) -> tuple[IntArray, IntArray]:
    """The ranges of tokens that begin inside spans of documents.

    Args:
        start: int[n], position of each token of a stream in its document, ascending within each.
        document: int64[d + 1]; document i has the tokens from document[i] to document[i + 1].
        first: int64[u], start of each span in its document.
        last: int64[u], its end.
        of: int64[u], its document.

    Returns:
        The position of each span's first token in the stream, and the number of its tokens.

    >>> begin, count = within(np.array([0, 4, 9, 0]), np.array([0, 3, 4]), np.array([4]), np.array([10]), np.array([0]))
    >>> begin.tolist(), count.tolist()
    ([1], [2])
    """
    widest = int(max(start.max(initial=0), last.max(initial=0))) + 1
    key = np.repeat(np.arange(len(document) - 1), np.diff(document)) * widest + start
    begin, end = np.searchsorted(key, of * widest + first), np.searchsorted(key, of * widest + last)
    return begin, end - begin


def common(first: UnitArray, second: UnitArray) -> tuple[IntArray, IntArray]:
    """The positions, in each of two ascending arrays, of the values that they have in common.

    >>> [places.tolist() for places in common(np.array([2, 5, 7], np.int32), np.array([1, 2, 3, 7], np.int32))]
    [[0, 2], [1, 3]]
    """
    if len(first) > len(second):
        in_second, in_first = common(second, first)
        return in_first, in_second
    place = np.searchsorted(second, first)
    is_there = np.zeros(len(first), np.bool_)
    inside = place < len(second)
    is_there[inside] = second[place[inside]] == first[inside]
    return np.flatnonzero(is_there), place[is_there]
