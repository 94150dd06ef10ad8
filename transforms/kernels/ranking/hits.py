"""Building blocks of metrics: counts and sums over the hits of every query, for many rankings at once."""

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray
from rankbeam.transforms.kernels.ranking.rankings import Assessment

EXAMPLE = Assessment(
    retrieved=np.array([5]),
    hit_query=np.array([0, 0, 0]),
    hit_rank=np.array([1, 3, 4]),
    hit_grade=np.array([2.0, 0.0, 1.0]),
    hit_repeated=np.array([False, False, False]),
    pool_query=np.array([0, 0, 0, 0]),
    pool_grade=np.array([2.0, 1.0, 1.0, 0.0]),
)
"""One query, for the examples below: of five documents retrieved, those at ranks 1, 3 and 4 are judged, with grades
2, 0 and 1; one more relevant document, of grade 1, was not retrieved."""


def discount(rank: IntArray) -> FloatArray:
    """The divisor of a gain in nDCG, log2(rank + 1); ranks begin at 1.

    >>> discount(np.array([1, 3])).tolist()
    [1.0, 2.0]
    """
    divisor: FloatArray = np.log2(rank + 1.0)
    return divisor


def upto(rank: IntArray, cutoff: int | None) -> BoolArray:
    """Return whether each rank is within a cutoff; all are if the cutoff is None.

    >>> upto(np.array([1, 2, 3]), 2).tolist()
    [True, True, False]
    """
    return np.ones(len(rank), bool) if cutoff is None else rank <= cutoff


def is_relevant(a: Assessment, rel: float) -> BoolArray:
    """bool[h]: the hit's grade is at least `rel`.

    >>> is_relevant(EXAMPLE, 1.0).tolist()
    [True, False, True]
    """
    return a.hit_grade >= rel


def relevant_count(a: Assessment, rel: float) -> FloatArray:
    """R: documents judged relevant, retrieved or not, per query.

    >>> relevant_count(EXAMPLE, 1.0).tolist()
    [3.0]
    """
    return count(a, a.pool_query, a.pool_grade >= rel)


def relevant_hits(a: Assessment, rel: float, cutoff: int | None) -> FloatArray:
    """Relevant documents among the first `cutoff`, per query.

    >>> relevant_hits(EXAMPLE, 1.0, 3).tolist()
    [1.0]
    """
    return count(a, a.hit_query, is_relevant(a, rel) & upto(a.hit_rank, cutoff))


def relevant_so_far(a: Assessment, rel: float) -> IntArray:
    """int64[h]: relevant hits of the same query at or above each hit.

    >>> relevant_so_far(EXAMPLE, 1.0).tolist()
    [1, 1, 2]
    """
    return so_far(a, is_relevant(a, rel))


def non_relevant_so_far(a: Assessment, rel: float) -> IntArray:
    """int64[h]: judged, non-relevant hits of the same query at or above each hit.

    >>> non_relevant_so_far(EXAMPLE, 1.0).tolist()
    [0, 1, 1]
    """
    return so_far(a, (a.hit_grade >= 0) & (a.hit_grade < rel))


def so_far(a: Assessment, chosen: BoolArray) -> IntArray:
    """int64[h]: the number of chosen hits of the same query at or above each hit.

    >>> so_far(EXAMPLE, np.array([True, True, False])).tolist()
    [1, 2, 2]
    """
    running = np.cumsum(chosen)
    per_query = np.bincount(a.hit_query, weights=chosen).astype(np.int64)
    before = np.cumsum(per_query) - per_query
    return running - before[a.hit_query]


def count(a: Assessment, query: IntArray, chosen: BoolArray) -> FloatArray:
    """The number of chosen rows of each query; `query` is `a.hit_query` or `a.pool_query`.

    >>> count(EXAMPLE, EXAMPLE.hit_query, np.array([True, True, False])).tolist()
    [2.0]
    """
    return np.bincount(query[chosen], minlength=a.queries).astype(np.float64)


def total(a: Assessment, query: IntArray, values: FloatArray, chosen: BoolArray) -> FloatArray:
    """The sum of the chosen rows' values, per query.

    >>> total(EXAMPLE, EXAMPLE.hit_query, EXAMPLE.hit_grade, np.array([True, True, True])).tolist()
    [3.0]
    """
    # bincount adds in row order, rank by rank, as trec_eval does: the last bits agree.
    sums = np.bincount(query[chosen], weights=values[chosen], minlength=a.queries)
    return sums.astype(np.float64, copy=False)


def ratio(numerator: FloatArray, denominator: FloatArray | IntArray) -> FloatArray:
    """The quotient; 0 where the denominator is 0.

    >>> ratio(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    result = np.zeros(len(numerator))
    np.divide(numerator, denominator, out=result, where=denominator != 0)
    return result
