"""Metrics of queries that have several subtopics (intents): a ranking gains by covering all of them.

A document is relevant to a subtopic if its grade is above 0. Values are those of TREC's ndeval, with gains
(1 - alpha)^c of a subtopic that c better-ranked documents have covered (Clarke et al., SIGIR 2008). A query without a
relevant document scores 0.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray, concatenated_ranges, position_in_group, runs_of
from rankbeam.transforms.kernels.ranking import hits
from rankbeam.transforms.kernels.ranking.pools import Subtopics
from rankbeam.transforms.kernels.ranking.rankings import Assessment

_Divisor = Callable[[IntArray], FloatArray]
"""The divisor of a gain by its rank."""


def subtopic_recall(a: Assessment, *, cutoff: int) -> FloatArray:
    """Share of the query's subtopics that the first `cutoff` documents cover (Zhai et al., SIGIR 2003).

    >>> subtopic_recall(EXAMPLE, cutoff=2).tolist()
    [0.5]
    """
    subtopics, query, _, subtopic = _hit_subtopics(a, cutoff)
    covered = np.unique(np.stack([query, subtopic]), axis=1)[0]
    return hits.ratio(np.bincount(covered, minlength=a.queries).astype(np.float64), subtopics.number)


def alpha_dcg(a: Assessment, *, cutoff: int, alpha: float = 0.5) -> FloatArray:
    """Discounted gain of new subtopics, over that of documents that are all relevant to every subtopic.

    >>> alpha_dcg(EXAMPLE, cutoff=3).round(4).tolist()
    [0.3471]
    """
    return _over_perfect(a, cutoff, alpha, hits.discount)


def alpha_ndcg(a: Assessment, *, cutoff: int, alpha: float = 0.5) -> FloatArray:
    """Discounted gain of new subtopics, over that of the ideal ranking of the pool (Clarke et al., SIGIR 2008).

    If the greedy ideal ranking is not the best one, a value can slightly exceed 1.

    >>> alpha_ndcg(EXAMPLE, cutoff=3).round(4).tolist()
    [0.4098]
    """
    return _over_ideal(a, cutoff, alpha, hits.discount)


def err_ia(a: Assessment, *, cutoff: int, alpha: float = 0.5) -> FloatArray:
    """Expected reciprocal rank by intent, over that of documents that are all relevant to every subtopic.

    Chapelle et al., Information Retrieval 14(6), 2011, with the probability `alpha` that a relevant document satisfies.

    >>> err_ia(EXAMPLE, cutoff=3).round(4).tolist()
    [0.375]
    """
    return _over_perfect(a, cutoff, alpha, _rank)


def nerr_ia(a: Assessment, *, cutoff: int, alpha: float = 0.5) -> FloatArray:
    """Expected reciprocal rank by intent, over that of the ideal ranking of the pool.

    >>> nerr_ia(EXAMPLE, cutoff=3).round(4).tolist()
    [0.4286]
    """
    return _over_ideal(a, cutoff, alpha, _rank)


def _rank(rank: IntArray) -> FloatArray:
    divisor: FloatArray = rank.astype(np.float64)
    return divisor


def _hit_subtopics(a: Assessment, cutoff: int) -> tuple[Subtopics, IntArray, IntArray, IntArray]:
    """The subtopics, and query, rank and subtopic of each pair of a hit and a subtopic, by query and rank."""
    assert a.subtopics is not None  # noqa: S101  pipelines read them where a metric needs them
    assert a.hit_judgement is not None  # noqa: S101
    subtopics = a.subtopics
    within = np.flatnonzero(hits.upto(a.hit_rank, cutoff))
    begin = np.searchsorted(subtopics.judgement, a.hit_judgement[within])
    number = np.searchsorted(subtopics.judgement, a.hit_judgement[within], side="right") - begin
    hit = np.repeat(within, number)
    return subtopics, a.hit_query[hit], a.hit_rank[hit], subtopics.subtopic[concatenated_ranges(begin, number)]


def _discounted_gain(a: Assessment, cutoff: int, alpha: float, divisor: _Divisor) -> tuple[FloatArray, Subtopics]:
    """float64[n], the sum over the first ranks of the gains of new subtopics, each over its divisor; the subtopics."""
    subtopics, query, rank, subtopic = _hit_subtopics(a, cutoff)
    order = np.lexsort((rank, subtopic, query))
    group = runs_of(query[order], subtopic[order])
    earlier = np.empty(len(order), np.int64)
    earlier[order] = position_in_group(group, len(group))
    gain = np.power(1.0 - alpha, earlier) / divisor(rank)
    return np.bincount(query, weights=gain, minlength=a.queries).astype(np.float64, copy=False), subtopics


def _over_ideal(a: Assessment, cutoff: int, alpha: float, divisor: _Divisor) -> FloatArray:
    gained, subtopics = _discounted_gain(a, cutoff, alpha, divisor)
    ideal = subtopics.ideal(alpha, cutoff) / divisor(np.arange(1, cutoff + 1))
    return hits.ratio(gained, ideal.sum(axis=1))


def _over_perfect(a: Assessment, cutoff: int, alpha: float, divisor: _Divisor) -> FloatArray:
    gained, subtopics = _discounted_gain(a, cutoff, alpha, divisor)
    ranks = np.arange(1, cutoff + 1)
    perfect = (np.power(1.0 - alpha, ranks - 1) / divisor(ranks)).sum()
    return hits.ratio(gained, subtopics.number * perfect)


EXAMPLE = replace(
    hits.EXAMPLE,
    hit_judgement=np.array([0, 3, 1]),
    subtopics=Subtopics(1, np.array([0, 1, 2, 2]), np.zeros(4, int), np.array([0, 0, 0, 1])),
)
"""The ranking of `hits.EXAMPLE`: its two relevant documents are about subtopic 0, the missing one about both."""
