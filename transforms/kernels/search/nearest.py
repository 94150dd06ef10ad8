"""The nearest of many vectors, exactly: every vector is compared with every query, some at a time."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray

SingleArray = npt.NDArray[np.float32]

_BYTES_AT_ONCE = 64 << 20
_ROUNDING = 1e-4  # more than products in single precision of vectors of length 1 are wrong by


def nearest(vectors: SingleArray, queries: SingleArray, count: int) -> Iterator[tuple[IntArray, FloatArray]]:
    """The vectors with the largest products with each query.

    Candidates are chosen in single precision, and compared in double: so a score does not depend on how many queries
    were asked together.

    Args:
        vectors: float32[n, d], of length 1; those of length 0 are left out.
        queries: float32[q, d], of length 1.
        count: most results for each query.

    Yields:
        For each query positions of vectors, best first and the earlier one first among equals, and their products.

    >>> [(places, scores)] = nearest(np.float32([[0, 1], [1, 0], [0, 0]]), np.float32([[0, 1]]), 2)
    >>> places.tolist(), scores.tolist()
    ([0, 1], [1.0, 0.0])
    """
    is_there = vectors.any(axis=1)
    at_once = max(1, _BYTES_AT_ONCE // (4 * max(1, len(vectors))))
    for first in range(0, len(queries), at_once):
        some = queries[first : first + at_once]
        products = some @ vectors.T
        for query, row in zip(some, products, strict=True):
            yield _best(vectors, query, np.where(is_there, row, -np.inf), count)


def _best(vectors: SingleArray, query: SingleArray, products: SingleArray, count: int) -> tuple[IntArray, FloatArray]:
    last = max(0, len(products) - count)
    threshold = np.partition(products, last)[last] if len(products) else 0.0
    places = np.flatnonzero((products >= threshold - _ROUNDING) & (products > -np.inf))
    exact = (vectors[places].astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    order = np.argsort(-exact, kind="stable")[:count]
    return places[order], exact[order]


def unit_length(vectors: npt.NDArray[np.floating], shortest: float = 0.0) -> SingleArray:
    """The vectors with length 1; those of this length or less as zeros.

    >>> unit_length(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return np.where(lengths > shortest, vectors / np.where(lengths > 0, lengths, 1.0), 0.0).astype(np.float32)
