"""Metrics of rankings with incomplete judgements, and counts of what is judged. The reference is trec_eval v10."""

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking import hits
from rankbeam.transforms.kernels.ranking.rankings import Assessment

INFAP_EPSILON = 0.00001


def bpref(a: Assessment, *, rel: float = 1.0) -> FloatArray:
    """Binary preference of relevant over judged non-relevant documents (Buckley and Voorhees, SIGIR 2004).

    >>> bpref(hits.EXAMPLE).round(4).tolist()
    [0.3333]
    """
    relevant = hits.relevant_count(a, rel)
    non_relevant = hits.count(a, a.pool_query, (a.pool_grade >= 0) & (a.pool_grade < rel))
    before = np.minimum(hits.non_relevant_so_far(a, rel), relevant[a.hit_query])
    bound = np.minimum(non_relevant, relevant)[a.hit_query]
    preference = 1.0 - hits.ratio(before.astype(np.float64), bound.astype(np.float64))
    return hits.ratio(hits.total(a, a.hit_query, preference, hits.is_relevant(a, rel)), relevant)


def inferred_ap(a: Assessment, *, rel: float = 1.0) -> FloatArray:
    """AP estimated from a sampled pool (Yilmaz and Aslam, CIKM 2006); a grade below 0 is "in the pool, unjudged".

    At a relevant document of rank k the precision is 1/k + (k-1)/k · (pooled/(k-1)) · (rel+ε)/(rel+nonrel+2ε),
    counted over the ranks above it, with ε = 0.00001 as in trec_eval.

    >>> inferred_ap(hits.EXAMPLE).round(4).tolist()
    [0.5]
    """
    above_relevant = hits.relevant_so_far(a, rel) - 1
    above_non_relevant = hits.non_relevant_so_far(a, rel)
    above_unjudged = hits.so_far(a, a.hit_grade < 0)
    rank: FloatArray = a.hit_rank.astype(np.float64)
    above = rank - 1.0
    pooled = above_relevant + above_non_relevant + above_unjudged
    share = (above_relevant + INFAP_EPSILON) / (above_relevant + above_non_relevant + 2 * INFAP_EPSILON)
    expected = 1.0 / rank + above / rank * hits.ratio(pooled.astype(np.float64), above) * share
    expected = np.where(rank == 1.0, 1.0, expected)
    return hits.ratio(hits.total(a, a.hit_query, expected, hits.is_relevant(a, rel)), hits.relevant_count(a, rel))


def judged(a: Assessment, *, cutoff: int | None = None) -> FloatArray:
    """Share of the retrieved documents among the first `cutoff` that have a judgement.

    This is ir_measures' Judged, except that a grade below 0 is not a judgement here.

    >>> judged(hits.EXAMPLE, cutoff=10).round(4).tolist()
    [0.6]
    """
    seen = a.retrieved if cutoff is None else np.minimum(a.retrieved, cutoff)
    with_judgement = hits.count(a, a.hit_query, (a.hit_grade >= 0) & hits.upto(a.hit_rank, cutoff))
    return hits.ratio(with_judgement, seen)


def unjudged(a: Assessment, *, cutoff: int) -> FloatArray:
    """Documents without a judgement among the first `cutoff`, over `cutoff`, retrieved or not (trec_eval's unj).

    >>> unjudged(hits.EXAMPLE, cutoff=10).round(4).tolist()
    [0.2]
    """
    with_judgement = hits.count(a, a.hit_query, (a.hit_grade >= 0) & hits.upto(a.hit_rank, cutoff))
    return (np.minimum(a.retrieved, cutoff) - with_judgement) / cutoff


def num_non_relevant_retrieved(a: Assessment, *, rel: float = 1.0) -> FloatArray:
    """Documents retrieved that are judged, and not relevant (trec_eval's num_nonrel_judged_ret).

    >>> num_non_relevant_retrieved(hits.EXAMPLE).round(4).tolist()
    [1.0]
    """
    return hits.count(a, a.hit_query, (a.hit_grade >= 0) & (a.hit_grade < rel))
