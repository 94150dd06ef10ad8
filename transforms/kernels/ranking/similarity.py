"""Rank-biased overlap of two rankings, or of a ranking with the ideal one, with the most weight on the first ranks."""

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray, position_in_group, runs_of
from rankbeam.transforms.kernels.ranking import hits
from rankbeam.transforms.kernels.ranking.rankings import Assessment


def compatibility(a: Assessment, *, p: float = 0.95, normalize: bool = True) -> FloatArray:
    """Rank-biased overlap with the ideal ranking: the documents with a grade above 0, those of the highest grade first.

    Documents of equal grade are in the order of the ranking, those that are not retrieved last. The overlap of two
    prefixes of length d counts with p^(d - 1) / d, down to the end of the longer ranking. Normalized, it is divided by
    that of the ideal ranking with itself (Clarke, Vtyurina and Smucker, TOIS 39(3), 2021).

    >>> compatibility(hits.EXAMPLE).round(4).tolist()
    [0.6351]
    """
    levels, relevant = np.unique(a.pool_grade), a.pool_grade > 0
    query = a.pool_query[relevant]
    keys = query * len(levels) - np.searchsorted(levels, a.pool_grade[relevant])  # in the order of the ideal ranking
    position = position_in_group(query, a.queries) + 1
    hit = np.flatnonzero(a.hit_grade > 0)
    hit_keys = a.hit_query[hit] * len(levels) - np.searchsorted(levels, a.hit_grade[hit])
    order = np.argsort(hit_keys, kind="stable")
    hit, hit_keys = hit[order], hit_keys[order]
    group = runs_of(a.hit_query[hit], hit_keys)
    ideal = position[np.searchsorted(keys, hit_keys)] + position_in_group(group, len(group))
    end = np.maximum(a.retrieved, np.bincount(query, minlength=a.queries))
    weights = np.power(p, np.arange(int(end.max(initial=0)), dtype=np.float64))
    overlaps = np.cumsum(np.append(0.0, weights / np.arange(1, len(weights) + 1)))

    def overlap(query: IntArray, depth: IntArray) -> FloatArray:
        return np.bincount(query, overlaps[end[query]] - overlaps[depth - 1], a.queries).astype(np.float64, copy=False)

    total = overlap(query, position) if normalize else np.cumsum(np.append(0.0, weights))[end]
    return np.minimum(hits.ratio(overlap(a.hit_query[hit], np.maximum(a.hit_rank[hit], ideal)), total), 1.0)


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
