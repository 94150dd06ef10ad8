"""Exact search for the nearest of many vectors, and for similar texts: every vector is compared with every query.

In each block of products, only those among the best so far are examined. So memory does not depend on the number of
vectors, which may be mapped from a file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray, SingleArray, one_thread

_QUERIES_AT_ONCE, _ROWS_AT_ONCE = 256, 8192
_ROUNDING = 1e-4  # above the error of products, in single precision, of vectors of length 1
Vectors = Mapping[str, SingleArray]  # the embedding of each text
_DIGITS = 9  # machines add in different orders


def nearest(vectors: SingleArray, queries: SingleArray, count: int) -> Iterator[tuple[IntArray, FloatArray]]:
    """The vectors with the largest products with each query.

    Candidates are chosen in single precision, and compared in double: so a score does not depend on how many queries
    are searched for together.

    Args:
        vectors: float32[n, d], of length 1; those of length 0 are left out.
        queries: float32[q, d], of length 1.
        count: most results for each query.

    Yields:
        For each query, the positions of vectors, best first and the earlier one first among equals, and their products.

    >>> [(places, scores)] = nearest(np.float32([[0, 1], [1, 0], [0, 0]]), np.float32([[0, 1]]), 2)
    >>> places.tolist(), scores.tolist()
    ([0, 1], [1.0, 0.0])
    """
    vectors = np.asarray(vectors)
    for first in range(0, len(queries), _QUERIES_AT_ONCE):
        block_queries = queries[first : first + _QUERIES_AT_ONCE]
        best = [_Best(count) for _ in block_queries]
        with one_thread():
            for start in range(0, len(vectors), _ROWS_AT_ONCE):
                _compare(block_queries, vectors[start : start + _ROWS_AT_ONCE], start, best)
        for query, query_best in zip(block_queries, best, strict=True):
            yield query_best.exactly(vectors, query)


def _compare(queries: SingleArray, block: SingleArray, start: int, best: "list[_Best]") -> None:
    """Add the vectors of a block that may be among the best."""
    products = queries @ block.T
    least = np.array([one.least for one in best], np.float32)
    last = len(block) - best[0].count
    if not start and last > 0:  # nothing is known yet, and all would be among the best so far
        ranked = np.where(block.any(axis=1), products, np.float32(-np.inf))
        least = np.partition(ranked, last, axis=1)[:, last] - np.float32(_ROUNDING)
    number, row = np.divmod(np.flatnonzero(products >= least[:, None]), len(block))
    product = products[number, row]
    is_there = product != 0  # the product of a missing vector is 0
    is_there[~is_there] = block[row[~is_there]].any(axis=1)
    number, row, product = number[is_there], row[is_there], product[is_there]
    bounds = np.searchsorted(number, np.arange(len(queries) + 1))
    for place in np.flatnonzero(np.diff(bounds)):
        rows = slice(bounds[place], bounds[place + 1])
        best[place].add(start + row[rows], product[rows])


@dataclass
class _Best:
    """The best vectors for a query so far: a few more than `count`, since products are rounded."""

    count: int
    places: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    products: SingleArray = field(default_factory=lambda: np.empty(0, np.float32))
    least: float = -np.inf

    def add(self, places: IntArray, products: SingleArray) -> None:
        """Add vectors, and drop those that are no longer among the best."""
        self.places = np.concatenate([self.places, places])
        self.products = np.concatenate([self.products, products])
        last = len(self.products) - self.count
        if last > 0:
            self.least = float(np.partition(self.products, last)[last]) - _ROUNDING
            is_kept = self.products >= self.least
            self.places, self.products = self.places[is_kept], self.products[is_kept]

    def exactly(self, vectors: SingleArray, query: SingleArray) -> tuple[IntArray, FloatArray]:
        """The best vectors, in the order of their products in double precision."""
        exact = (vectors[self.places].astype(np.float64) * query.astype(np.float64)).sum(axis=1)
        order = np.argsort(-exact, kind="stable")[: self.count]
        return self.places[order], exact[order]


def unit_length(vectors: npt.NDArray[np.floating], shortest: float = 0.0) -> SingleArray:
    """Scale vectors to length 1; those that are not longer than `shortest` become zeros.

    >>> unit_length(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return np.where(lengths > shortest, vectors / np.where(lengths > 0, lengths, 1.0), 0.0).astype(np.float32)


def first_near(texts: Sequence[str], vectors: Vectors, least_cosine: float, same: Sequence[int]) -> list[int]:
    """For every text, the position of the first similar one; its own if none is similar.

    Only texts that resemble no earlier one represent others.

    Args:
        texts: the texts in their order.
        vectors: their embeddings; a text without one resembles no other.
        least_cosine: the lowest cosine at which two are similar.
        same: such positions by another measure, whose pairs are similar in any case.

    >>> vectors = {"a": np.float32([1, 0]), "b": np.float32([0, 1]), "c": np.float32([1, 0.1])}
    >>> first_near(["a", "b", "c"], vectors, 0.9, [0, 1, 2])
    [0, 1, 0]
    """
    places = list(same)
    originals: list[int] = []
    matrix = np.empty((len(texts), len(next(iter(vectors.values()), ()))))
    for place, text in enumerate(texts):
        if places[place] != place or text not in vectors:
            continue
        vector = unit_length(vectors[text][None, :])[0].astype(np.float64)
        cosines = np.round(matrix[: len(originals)] @ vector, _DIGITS)
        near = np.flatnonzero(cosines >= least_cosine)
        if len(near):
            places[place] = originals[near[0]]
        else:
            matrix[len(originals)] = vector
            originals.append(place)
    return places
