"""Metrics of queries that have several subtopics (intents): a ranking gains by covering all of them.

A document is relevant to a subtopic if its grade for it is at least `rel`. Subtopics without a relevant document do not
count. Values are those of TREC's ndeval, with gains (1 - alpha)^c of a subtopic that c better-ranked documents have
covered (Clarke et al., SIGIR 2008). A query without a relevant document scores 0.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray, concatenated_ranges, position_in_group, runs_of
from rankbeam.transforms.kernels.ranking import hits
from rankbeam.transforms.kernels.ranking.pools import Subtopics
from rankbeam.transforms.kernels.ranking.rankings import Assessment

_Divisor = Callable[[IntArray], FloatArray]  # the divisor of a gain by its rank


def subtopic_recall(a: Assessment, *, cutoff: int, rel: float = 1.0) -> FloatArray:
    """Share of the query's subtopics that the first `cutoff` documents cover (Zhai et al., SIGIR 2003).

    >>> subtopic_recall(EXAMPLE, cutoff=2).tolist()
    [0.5]
    """
    subtopics, query, _, subtopic = _hit_subtopics(a, cutoff, rel)
    covered = np.unique(np.stack([query, subtopic]), axis=1)[0]
    return hits.ratio(np.bincount(covered, minlength=a.queries).astype(np.float64), subtopics.number)


def alpha_dcg(a: Assessment, *, cutoff: int, alpha: float = 0.5, rel: float = 1.0) -> FloatArray:
    """Discounted gain of new subtopics, over that of documents that are all relevant to every subtopic.

    >>> alpha_dcg(EXAMPLE, cutoff=3).round(4).tolist()
    [0.3471]
    """
    return _over_perfect(a, cutoff, alpha, rel, hits.discount)


def alpha_ndcg(a: Assessment, *, cutoff: int, alpha: float = 0.5, rel: float = 1.0) -> FloatArray:
    """Discounted gain of new subtopics, over that of the ideal ranking of the pool (Clarke et al., SIGIR 2008).

    If the greedy ideal ranking is not the best one, a value can slightly exceed 1.

    >>> alpha_ndcg(EXAMPLE, cutoff=3).round(4).tolist()
    [0.4098]
    """
    return _over_ideal(a, cutoff, alpha, rel, hits.discount)


def err_ia(a: Assessment, *, cutoff: int, alpha: float = 0.5, rel: float = 1.0) -> FloatArray:
    """Expected reciprocal rank by intent, over that of documents that are all relevant to every subtopic.

    Chapelle et al., Information Retrieval 14(6), 2011, with the probability `alpha` that a relevant document satisfies.

    >>> err_ia(EXAMPLE, cutoff=3).round(4).tolist()
    [0.375]
    """
    return _over_perfect(a, cutoff, alpha, rel, _rank)


def nerr_ia(a: Assessment, *, cutoff: int, alpha: float = 0.5, rel: float = 1.0) -> FloatArray:
    """Expected reciprocal rank by intent, over that of the ideal ranking of the pool.

    >>> nerr_ia(EXAMPLE, cutoff=3).round(4).tolist()
    [0.4286]
    """
    return _over_ideal(a, cutoff, alpha, rel, _rank)


def novelty_rbp(a: Assessment, *, alpha: float = 0.5, beta: float = 0.5, rel: float = 1.0) -> FloatArray:
    """Gain of new subtopics times β^(rank - 1), over that of documents that are all relevant to every subtopic.

    Clarke, Kolla and Vechtomova, ICTIR 2009 (NRBP of ndeval); β is the probability of looking at the next document.

    >>> novelty_rbp(EXAMPLE).round(4).tolist()
    [0.3984]
    """
    gained, subtopics = _discounted_gain(a, None, alpha, rel, partial(_patience, beta))
    return hits.ratio(gained * (1.0 - (1.0 - alpha) * beta), subtopics.number)


def normalized_novelty_rbp(a: Assessment, *, alpha: float = 0.5, beta: float = 0.5, rel: float = 1.0) -> FloatArray:
    """Gain of new subtopics times β^(rank - 1), over that of the ideal ranking of the pool.

    >>> normalized_novelty_rbp(EXAMPLE).round(4).tolist()
    [0.4595]
    """
    return _over_ideal(a, None, alpha, rel, partial(_patience, beta))


def intent_aware_precision(a: Assessment, *, cutoff: int, rel: float = 1.0) -> FloatArray:
    """Mean over the subtopics of precision at `cutoff` (Agrawal et al., WSDM 2009).

    >>> intent_aware_precision(EXAMPLE, cutoff=4).tolist()
    [0.25]
    """
    subtopics, query, _, _ = _hit_subtopics(a, cutoff, rel)
    return hits.ratio(np.bincount(query, minlength=a.queries).astype(np.float64), cutoff * subtopics.number)


def intent_aware_ap(a: Assessment, *, rel: float = 1.0) -> FloatArray:
    """Mean over the subtopics of average precision (Agrawal et al., WSDM 2009).

    >>> intent_aware_ap(EXAMPLE).round(4).tolist()
    [0.25]
    """
    subtopics, query, rank, subtopic = _hit_subtopics(a, None, rel)
    width = int(subtopics.subtopic.max(initial=0)) + 1
    relevant = np.bincount(subtopics.query * width + subtopics.subtopic, minlength=a.queries * width)
    precision = (_covered_above(query, rank, subtopic) + 1) / rank / relevant[query * width + subtopic]
    total = np.bincount(query, weights=precision, minlength=a.queries).astype(np.float64, copy=False)
    return hits.ratio(total, subtopics.number)


def _patience(beta: float, rank: IntArray) -> FloatArray:
    with np.errstate(divide="ignore", over="ignore"):  # infinite if beta is 0, and at deep ranks: such gains are 0
        divisor: FloatArray = np.power(beta, 1.0 - rank)
    return divisor


def _rank(rank: IntArray) -> FloatArray:
    divisor: FloatArray = rank.astype(np.float64)
    return divisor


def _hit_subtopics(a: Assessment, cutoff: int | None, rel: float) -> tuple[Subtopics, IntArray, IntArray, IntArray]:
    """The relevant subtopics, and query, rank and subtopic of each pair of a hit and a subtopic, by query and rank."""
    assert a.subtopics is not None  # noqa: S101  pipelines read them where a metric needs them
    assert a.hit_judgement is not None  # noqa: S101
    subtopics = a.subtopics.relevant(rel)
    within = np.flatnonzero(hits.upto(a.hit_rank, cutoff))
    begin = np.searchsorted(subtopics.judgement, a.hit_judgement[within])
    number = np.searchsorted(subtopics.judgement, a.hit_judgement[within], side="right") - begin
    hit = np.repeat(within, number)
    return subtopics, a.hit_query[hit], a.hit_rank[hit], subtopics.subtopic[concatenated_ranges(begin, number)]


def _covered_above(query: IntArray, rank: IntArray, subtopic: IntArray) -> IntArray:
    """For each pair, the number of better-ranked documents that are relevant to its subtopic."""
    order = np.lexsort((rank, subtopic, query))
    group = runs_of(query[order], subtopic[order])
    above = np.empty(len(order), np.int64)
    above[order] = position_in_group(group, len(group))
    return above


def _discounted_gain(
    a: Assessment, cutoff: int | None, alpha: float, rel: float, divisor: _Divisor
) -> tuple[FloatArray, Subtopics]:
    """float64[n], the sum over the first ranks of the gains of new subtopics, each over its divisor; the subtopics."""
    subtopics, query, rank, subtopic = _hit_subtopics(a, cutoff, rel)
    gain = np.power(1.0 - alpha, _covered_above(query, rank, subtopic)) / divisor(rank)
    return np.bincount(query, weights=gain, minlength=a.queries).astype(np.float64, copy=False), subtopics


def _over_ideal(a: Assessment, cutoff: int | None, alpha: float, rel: float, divisor: _Divisor) -> FloatArray:
    gained, subtopics = _discounted_gain(a, cutoff, alpha, rel, divisor)
    depth = cutoff or int(np.bincount(a.pool_query).max(initial=1))
    ideal = subtopics.ideal(alpha, depth) / divisor(np.arange(1, depth + 1))
    return hits.ratio(gained, np.add.accumulate(ideal, axis=1)[:, -1])  # whatever the depth, the same sum


def _over_perfect(a: Assessment, cutoff: int, alpha: float, rel: float, divisor: _Divisor) -> FloatArray:
    gained, subtopics = _discounted_gain(a, cutoff, alpha, rel, divisor)
    ranks = np.arange(1, cutoff + 1)
    perfect = (np.power(1.0 - alpha, ranks - 1) / divisor(ranks)).sum()
    return hits.ratio(gained, subtopics.number * perfect)


EXAMPLE = replace(
    hits.EXAMPLE,
    hit_judgement=np.array([0, 3, 1]),
    subtopics=Subtopics(1, np.array([0, 1, 2, 2]), np.zeros(4, int), np.array([0, 0, 0, 1]), np.ones(4)),
)
"""The ranking of `hits.EXAMPLE`: its two relevant documents are about subtopic 0, the missing one about both."""
