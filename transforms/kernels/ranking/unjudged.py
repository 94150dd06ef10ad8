"""Rankings whose unjudged documents are judged by assumption: bounds on what missing judgements hide.

Documents without a judgement count as not relevant. If all of them had the highest grade instead, the value would be
another one. For precision, recall, reciprocal rank, success and RBP no assumption leads beyond these two values; Moffat
and Zobel call their difference the residual ("Rank-biased precision for measurement of retrieval effectiveness", TOIS
2008). For nDCG and AP, whose ideal changes with the assumption, mixtures of both can lie slightly outside.
"""

from dataclasses import replace

import numpy as np

from rankbeam.transforms.kernels.arrays import position_in_group
from rankbeam.transforms.kernels.ranking.rankings import Assessment


def with_assumed_grades(a: Assessment, grade: float, cutoff: int | None = None) -> Assessment:
    """The rankings with a grade for every unjudged document among the first ones, which also enters the pool.

    Args:
        a: n rankings with distinct documents; a grade below 0 counts as unjudged.
        grade: the assumed grade.
        cutoff: number of first documents; None for all.

    >>> from rankbeam.transforms.kernels.ranking import hits, metrics
    >>> assumed = with_assumed_grades(hits.EXAMPLE, 2.0, cutoff=5)
    >>> metrics.precision(hits.EXAMPLE, cutoff=5).tolist(), metrics.precision(assumed, cutoff=5).tolist()
    ([0.4], [0.8])
    """
    depth = a.retrieved if cutoff is None else np.minimum(a.retrieved, cutoff)
    query = np.repeat(np.arange(a.queries), depth)
    rank = position_in_group(query, a.queries) + 1
    width = int(max(a.retrieved.max(initial=0), a.hit_rank.max(initial=0))) + 1
    judged = a.hit_grade >= 0
    places = a.hit_query * width + a.hit_rank
    open_ones = ~np.isin(query * width + rank, places[judged])
    query, rank = query[open_ones], rank[open_ones]
    stays = judged | ~np.isin(places, query * width + rank)
    hit_query, hit_rank = np.concatenate([a.hit_query[stays], query]), np.concatenate([a.hit_rank[stays], rank])
    hit_grade = np.concatenate([a.hit_grade[stays], np.full(len(query), grade)])
    pool_query = np.concatenate([a.pool_query, query])
    pool_grade = np.concatenate([a.pool_grade, np.full(len(query), grade)])
    order, pool_order = np.lexsort((hit_rank, hit_query)), np.lexsort((-pool_grade, pool_query))
    return replace(
        a,
        hit_query=hit_query[order],
        hit_rank=hit_rank[order],
        hit_grade=hit_grade[order],
        hit_repeated=np.concatenate([a.hit_repeated[stays], np.zeros(len(query), bool)])[order],
        pool_query=pool_query[pool_order],
        pool_grade=pool_grade[pool_order],
        hit_first=None,
        hit_last=None,
    )
