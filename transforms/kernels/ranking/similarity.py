"""Rank-biased overlap: how much two rankings resemble each other, with the most weight on the first ranks."""

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray


def rank_biased_overlap(
    query: IntArray, first_rank: IntArray, second_rank: IntArray, first: IntArray, second: IntArray, p: float = 0.9
) -> FloatArray:
    """Extrapolated rank-biased overlap of two rankings of each query, from 0 to 1.

    The overlap of two prefixes of length d counts with p^d / d. The documents beyond the ends of the rankings are
    assumed to overlap as those before do (Webber, Moffat and Zobel, TOIS 28(4), 2010, equation 32).

    Args:
        query: int64[m], position of the query of each document that both rankings have.
        first_rank: int64[m], its rank in the first ranking, from 1.
        second_rank: int64[m], its rank in the second one.
        first: int64[n], the lengths of the first rankings.
        second: int64[n], the lengths of the second ones.
        p: weight of the next rank, above 0 and below 1. With .9, the first ten ranks have 86% of the weight.

    Returns:
        float64[n]: 0 if one ranking is empty, and 1 if both are.

    >>> both = np.zeros(2, int)
    >>> rank_biased_overlap(both, np.array([1, 2]), np.array([2, 1]), np.array([2]), np.array([2])).round(4).tolist()
    [0.9]
    """
    queries = len(first)
    shorter, longer = np.minimum(first, second), np.maximum(first, second)
    weights = p ** np.arange(int(longer.max(initial=0)) + 1)
    overlaps = np.cumsum(np.append(0.0, weights[1:] / np.arange(1, len(weights))))  # the sum of p^d / d up to d
    depth = np.maximum(first_rank, second_rank)  # from here on, a document is part of the overlap
    share = np.bincount(query, overlaps[longer[query]] - overlaps[depth - 1], queries)
    in_longer = np.bincount(query, minlength=queries)
    in_shorter = np.bincount(query[depth <= shorter[query]], minlength=queries)
    ratio = np.divide(in_shorter, shorter, out=np.zeros(queries), where=shorter > 0)
    powers = np.cumsum(np.append(0.0, weights[1:]))
    extended = ratio * (powers[longer] - powers[shorter] - shorter * (overlaps[longer] - overlaps[shorter]))
    tail_share = np.divide(in_longer - in_shorter, longer, out=np.zeros(queries), where=longer > 0) + ratio
    values = (1.0 - p) / p * (share + extended) + tail_share * weights[longer]
    return np.where(longer > 0, np.clip(values, 0.0, 1.0), 1.0)
