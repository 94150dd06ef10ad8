"""Every metric, for many rankings at once. The reference is trec_eval v10; "the notebook" is Google's for RAG Engine.

Each function takes an `Assessment` of n rankings and returns float64[n]. `rel` is the lowest grade that
counts as relevant; `cutoff` is the number of ranks that count, None for all. A query without relevant
documents, or without results, scores 0 and never NaN. The examples score one ranking, `hits.EXAMPLE`.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray, position_in_group
from rankbeam.transforms.kernels.ranking import hits
from rankbeam.transforms.kernels.ranking.rankings import Assessment


def linear_gain(grade: FloatArray) -> FloatArray:
    """The grade itself; grades below 0 gain nothing (Järvelin and Kekäläinen, 2002).

    >>> linear_gain(np.array([-1.0, 0.0, 3.0])).round(4).tolist()
    [0.0, 0.0, 3.0]
    """
    return np.maximum(grade, 0.0)


def exponential_gain(grade: FloatArray) -> FloatArray:
    """2^grade - 1 (Burges et al., 2005).

    >>> exponential_gain(np.array([-1.0, 0.0, 1.0, 3.0])).tolist()
    [0.0, 0.0, 1.0, 7.0]
    """
    return np.exp2(np.maximum(grade, 0.0)) - 1.0


GAINS: dict[str, Callable[[FloatArray], FloatArray]] = {"linear": linear_gain, "exp": exponential_gain}


def ndcg(a: Assessment, *, cutoff: int | None = None, gain: str = "linear", gains: str = "") -> FloatArray:
    """Discounted gain over that of the pool's ideal ranking, with the discount log2(rank + 1).

    Järvelin and Kekäläinen, TOIS 20(4), 2002; trec_eval's ndcg and ndcg_cut. `gains` replaces the gains of some grades.

    >>> ndcg(hits.EXAMPLE, cutoff=3).round(4).tolist(), ndcg(hits.EXAMPLE, cutoff=3, gains="{2:7}").round(4).tolist()
    ([0.6388], [0.8609])
    """
    if gains:
        a = _with_gains(a, gains)
    ideal_rank = position_in_group(a.pool_query, a.queries) + 1
    discounted = GAINS[gain](a.pool_grade) / hits.discount(ideal_rank)
    ideal = hits.total(a, a.pool_query, discounted, hits.upto(ideal_rank, cutoff))
    return hits.ratio(dcg(a, cutoff=cutoff, gain=gain), ideal)


def _with_gains(a: Assessment, gains: str) -> Assessment:
    """The rankings with gains for grades, such as {1:5,2:7}; the pool is sorted by them."""
    hit_grade, pool_grade = a.hit_grade, a.pool_grade
    for grade, gain in (map(float, pair.split(":")) for pair in gains.strip("{}").split(",")):
        hit_grade = np.where(a.hit_grade == grade, gain, hit_grade)
        pool_grade = np.where(a.pool_grade == grade, gain, pool_grade)
    order = np.lexsort((-pool_grade, a.pool_query))
    return replace(a, hit_grade=hit_grade, pool_grade=pool_grade[order])


def dcg(a: Assessment, *, cutoff: int | None = None, gain: str = "linear") -> FloatArray:
    """Discounted gain, discount log2(rank + 1): the numerator of nDCG (ranx's dcg and dcg_burges).

    >>> dcg(hits.EXAMPLE, cutoff=4).round(4).tolist()
    [2.4307]
    """
    discounted = GAINS[gain](a.hit_grade) / hits.discount(a.hit_rank)
    return hits.total(a, a.hit_query, discounted, hits.upto(a.hit_rank, cutoff))


def precision(a: Assessment, *, cutoff: int, rel: float = 1.0) -> FloatArray:
    """Relevant documents among the first `cutoff`, over `cutoff`, retrieved or not (trec_eval's P).

    >>> precision(hits.EXAMPLE, cutoff=4).round(4).tolist()
    [0.5]
    """
    return hits.relevant_hits(a, rel, cutoff) / cutoff


def recall(a: Assessment, *, cutoff: int | None = None, rel: float = 1.0) -> FloatArray:
    """Relevant documents among the first `cutoff`, over all relevant ones (trec_eval's recall).

    >>> recall(hits.EXAMPLE, cutoff=4).round(4).tolist()
    [0.6667]
    """
    return hits.ratio(hits.relevant_hits(a, rel, cutoff), hits.relevant_count(a, rel))


def capped_recall(a: Assessment, *, cutoff: int, rel: float = 1.0) -> FloatArray:
    """Recall over the most that `cutoff` ranks can hold: hits / min(cutoff, R) (BEIR's capped recall).

    >>> capped_recall(hits.EXAMPLE, cutoff=2).round(4).tolist()
    [0.5]
    """
    return hits.ratio(hits.relevant_hits(a, rel, cutoff), np.minimum(hits.relevant_count(a, rel), cutoff))


def f1(a: Assessment, *, cutoff: int, rel: float = 1.0) -> FloatArray:
    """Harmonic mean of precision and recall at `cutoff`.

    >>> f1(hits.EXAMPLE, cutoff=4).round(4).tolist()
    [0.5714]
    """
    return _harmonic_mean(precision(a, cutoff=cutoff, rel=rel), recall(a, cutoff=cutoff, rel=rel), 1.0)


def reciprocal_rank(a: Assessment, *, cutoff: int | None = None, rel: float = 1.0) -> FloatArray:
    """1 / rank of the first relevant document, 0 if there is none (trec_eval's recip_rank).

    >>> reciprocal_rank(hits.EXAMPLE).round(4).tolist()
    [1.0]
    """
    first = hits.relevant_so_far(a, rel) == 1
    chosen = first & hits.is_relevant(a, rel) & hits.upto(a.hit_rank, cutoff)
    return hits.total(a, a.hit_query, 1.0 / a.hit_rank, chosen)


def average_precision(a: Assessment, *, cutoff: int | None = None, rel: float = 1.0) -> FloatArray:
    """Mean over all relevant documents of the precision at their rank (trec_eval's map and map_cut).

    >>> average_precision(hits.EXAMPLE).round(4).tolist()
    [0.5]
    """
    precisions = hits.relevant_so_far(a, rel) / a.hit_rank
    chosen = hits.is_relevant(a, rel) & hits.upto(a.hit_rank, cutoff)
    return hits.ratio(hits.total(a, a.hit_query, precisions, chosen), hits.relevant_count(a, rel))


def interpolated_precision(a: Assessment, *, recall: float = 0.0, rel: float = 1.0) -> FloatArray:
    """The highest precision at any rank at which a level of recall is reached (trec_eval's iprec_at_recall).

    The level is reached with recall · R of the R relevant documents, rounded to the nearest whole number, as in
    trec_eval 10; trec_eval 9, and so pytrec_eval, takes floor(recall · R + 0.9).

    >>> interpolated_precision(hits.EXAMPLE, recall=0.5).round(4).tolist()
    [0.5]
    """
    count = hits.relevant_so_far(a, rel)
    threshold = np.floor(hits.relevant_count(a, rel) * recall + 0.5)
    chosen = hits.is_relevant(a, rel) & (count >= threshold[a.hit_query])
    highest = np.zeros(a.queries)
    np.maximum.at(highest, a.hit_query[chosen], count[chosen] / a.hit_rank[chosen])
    return highest


def success(a: Assessment, *, cutoff: int, rel: float = 1.0) -> FloatArray:
    """1 if a relevant document is among the first `cutoff`, else 0 (trec_eval's success; "hit rate").

    >>> success(hits.EXAMPLE, cutoff=3, rel=2).round(4).tolist()
    [1.0]
    """
    return (hits.relevant_hits(a, rel, cutoff) > 0).astype(np.float64)


def r_precision(a: Assessment, *, rel: float = 1.0, multiple: float = 1.0) -> FloatArray:
    """Precision at rank R, the number of relevant documents (trec_eval's Rprec), or at a multiple of R (Rprec_mult).

    >>> r_precision(hits.EXAMPLE).round(4).tolist(), r_precision(hits.EXAMPLE, multiple=2.0).round(4).tolist()
    ([0.3333], [0.3333])
    """
    cutoff = np.floor(multiple * hits.relevant_count(a, rel) + 0.9)  # rounded as trec_eval does
    inside = hits.is_relevant(a, rel) & (a.hit_rank <= cutoff[a.hit_query])
    return hits.ratio(hits.count(a, a.hit_query, inside), cutoff)


def rank_biased_precision(
    a: Assessment, *, cutoff: int | None = None, rel: float = 1.0, p: float = 0.8, graded: bool = False
) -> FloatArray:
    """(1 - p) Σ p^(rank - 1) over relevant documents (Moffat and Zobel, TOIS 27(1), 2008).

    Graded, each term is multiplied by grade / max(1, highest grade judged for the query), from 0 to 1, and `rel` has no
    effect: trec_eval's rbp, whose p is 0.9.

    >>> rank_biased_precision(hits.EXAMPLE).round(4).tolist()
    [0.3024]
    >>> rank_biased_precision(hits.EXAMPLE, graded=True).round(4).tolist()
    [0.2512]
    """
    weight = (1.0 - p) * np.power(p, a.hit_rank - 1.0)
    counted = hits.upto(a.hit_rank, cutoff)
    if not graded:
        return hits.total(a, a.hit_query, weight, hits.is_relevant(a, rel) & counted)
    highest = np.ones(a.queries)
    np.maximum.at(highest, a.pool_query, a.pool_grade)
    return hits.total(a, a.hit_query, weight * np.maximum(a.hit_grade, 0.0) / highest[a.hit_query], counted)


def expected_reciprocal_rank(a: Assessment, *, cutoff: int | None = None, max_rel: float = 4.0) -> FloatArray:
    """Expected reciprocal rank of the document that satisfies (Chapelle et al., CIKM 2009).

    A document of grade g satisfies with probability (2^g - 1) / 2^max_rel; gdeval and TREC Web use max_rel = 4.
    Grades above `max_rel` count as `max_rel`.

    >>> expected_reciprocal_rank(hits.EXAMPLE).round(4).tolist()
    [0.2002]
    """
    stop = exponential_gain(np.minimum(a.hit_grade, max_rel)) / np.exp2(max_rel)
    position = position_in_group(a.hit_query, a.queries)
    reach = np.ones(a.queries)
    total = np.zeros(a.queries)
    # One step per position of a hit, for all queries at once: a product inside groups has no faster exact form.
    for step in range(int(position.max(initial=-1)) + 1):
        rows = np.flatnonzero((position == step) & hits.upto(a.hit_rank, cutoff))
        query = a.hit_query[rows]
        total[query] += reach[query] * stop[rows] / a.hit_rank[rows]
        reach[query] *= 1.0 - stop[rows]
    return total


def set_precision(a: Assessment, *, rel: float = 1.0, relative: bool = False) -> FloatArray:
    """Relevant documents retrieved over documents retrieved (trec_eval's set_P).

    With `relative`, over the highest possible number of hits, min(retrieved, R) (trec_eval's set_relative_P).

    >>> set_precision(hits.EXAMPLE).round(4).tolist(), set_precision(hits.EXAMPLE, relative=True).round(4).tolist()
    ([0.4], [0.6667])
    """
    most = np.minimum(a.retrieved, hits.relevant_count(a, rel)) if relative else a.retrieved
    return hits.ratio(hits.relevant_hits(a, rel, None), most)


def set_average_precision(a: Assessment, *, rel: float = 1.0) -> FloatArray:
    """Precision times recall over the whole set (trec_eval's set_map).

    >>> set_average_precision(hits.EXAMPLE).round(4).tolist()
    [0.2667]
    """
    return hits.ratio(hits.relevant_hits(a, rel, None) ** 2, a.retrieved * hits.relevant_count(a, rel))


def set_recall(a: Assessment, *, rel: float = 1.0) -> FloatArray:
    """Relevant documents retrieved over all relevant ones (trec_eval's set_recall).

    >>> set_recall(hits.EXAMPLE).round(4).tolist()
    [0.6667]
    """
    return recall(a, rel=rel)


def set_f(a: Assessment, *, rel: float = 1.0, beta: float = 1.0) -> FloatArray:
    """(β + 1) P R / (R + β P) over the whole set, β weighing recall as trec_eval's set_F does.

    >>> set_f(hits.EXAMPLE).round(4).tolist()
    [0.5]
    """
    return _harmonic_mean(set_precision(a, rel=rel), recall(a, rel=rel), beta)


def num_retrieved(a: Assessment) -> FloatArray:
    """Documents retrieved (trec_eval's num_ret).

    >>> num_retrieved(hits.EXAMPLE).round(4).tolist()
    [5.0]
    """
    return a.retrieved.astype(np.float64)


def num_relevant(a: Assessment, *, rel: float = 1.0) -> FloatArray:
    """Documents judged relevant, retrieved or not (trec_eval's num_rel).

    >>> num_relevant(hits.EXAMPLE).round(4).tolist()
    [3.0]
    """
    return hits.relevant_count(a, rel)


def num_relevant_retrieved(a: Assessment, *, rel: float = 1.0) -> FloatArray:
    """Relevant documents retrieved (trec_eval's num_rel_ret).

    >>> num_relevant_retrieved(hits.EXAMPLE).round(4).tolist()
    [2.0]
    """
    return hits.relevant_hits(a, rel, None)


def chunk_precision(a: Assessment, *, cutoff: int, rel: float = 1.0) -> FloatArray:
    """The notebook's precision: relevant chunks over chunks *retrieved* among the first `cutoff`.

    >>> chunk_precision(hits.EXAMPLE, cutoff=10).round(4).tolist()
    [0.4]
    """
    return hits.ratio(hits.relevant_hits(a, rel, cutoff), np.minimum(a.retrieved, cutoff))


def chunk_recall(a: Assessment, *, cutoff: int, rel: float = 1.0) -> FloatArray:
    """The notebook's recall: distinct relevant documents among the first `cutoff` chunks, over all relevant ones.

    >>> chunk_recall(hits.EXAMPLE, cutoff=10).round(4).tolist()
    [0.6667]
    """
    chosen = hits.is_relevant(a, rel) & ~a.hit_repeated & hits.upto(a.hit_rank, cutoff)
    return hits.ratio(hits.count(a, a.hit_query, chosen), hits.relevant_count(a, rel))


def chunk_ndcg(a: Assessment, *, cutoff: int, gain: str = "exp", gains: str = "") -> FloatArray:
    """The notebook's nDCG: every chunk of a document gains, so the value can exceed 1; exponential gain by default.

    >>> chunk_ndcg(hits.EXAMPLE, cutoff=3).round(4).tolist()
    [0.7262]
    """
    return ndcg(a, cutoff=cutoff, gain="linear" if gains else gain, gains=gains)


def _harmonic_mean(precisions: FloatArray, recalls: FloatArray, beta: float) -> FloatArray:
    return hits.ratio((beta + 1.0) * precisions * recalls, recalls + beta * precisions)
