"""Bounds under ties: the lowest and the highest value of a metric over all orders of documents of equal score.

trec_eval breaks ties by document id, which says nothing about quality (Cabanac et al., "Tie-breaking bias: effect of
an uncontrolled parameter on information retrieval evaluation", CLEF 2010). McSherry and Najork ("Computing information
retrieval performance measures efficiently in the presence of tied scores", ECIR 2008) average over the orders; this
module gives the extremes. It does not search: it puts the hits of every tie group in the best or the worst order, and
the ordinary kernel scores the result. `Ties` says which orders are extreme for a metric.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray, position_in_group, runs_of
from rankbeam.transforms.kernels.ranking import hits, incomplete
from rankbeam.transforms.kernels.ranking.rankings import Assessment

Kernel = Callable[..., FloatArray]
Rearrange = Callable[[Assessment, float], Assessment]
"""Takes an assessment and the lowest relevant grade; returns the same rankings with their ties in another order."""

EXAMPLE = replace(hits.EXAMPLE, hit_first=np.array([1, 2, 2]), hit_last=np.array([1, 5, 5]))
"""`hits.EXAMPLE` with the documents at ranks 2 to 5 tied: grades 0 and 1, and two that are not in the pool."""


def best_order(a: Assessment, merit: FloatArray | None = None) -> Assessment:
    """The rankings with the hits of every tie group at the group's first ranks, those of highest merit first.

    Sorted by grade, this order is the best one for every metric in which a higher grade never gains less, and a higher
    rank never costs anything (a document outside the pool, or with a grade below 0, gains nothing). Proof: swap two
    neighbours of which the lower one has the higher grade, and no such metric falls; repeat until the group is sorted.
    The order depends neither on `rel` nor on the cutoff, so it is best for all of them at once.

    Args:
        a: n rankings with `hit_first` and `hit_last`.
        merit: float64[h], sorts the hits; None sorts by grade.

    Returns:
        The assessment with new values of `hit_rank`, and with `hit_grade` and `hit_repeated` in the new order.

    Raises:
        ValueError: the assessment holds no ties.

    >>> best_order(EXAMPLE).hit_rank.tolist(), best_order(EXAMPLE).hit_grade.tolist()
    ([1, 2, 3], [2.0, 1.0, 0.0])
    """
    first, _ = _tie_groups(a)
    group = runs_of(a.hit_query, first)
    rank = first + position_in_group(group, len(group))
    return _reorder_hits(a, _sorted_inside(group, -(a.hit_grade if merit is None else merit)), rank)


def worst_order(a: Assessment, merit: FloatArray | None = None) -> Assessment:
    """The rankings with the hits of every tie group at the group's last ranks, those of highest merit last.

    The mirror image of `best_order`, and the worst order for the same metrics, by the same proof.

    >>> worst_order(EXAMPLE).hit_rank.tolist(), worst_order(EXAMPLE).hit_grade.tolist()
    ([1, 4, 5], [2.0, 0.0, 1.0])
    """
    first, last = _tie_groups(a)
    group = runs_of(a.hit_query, first)
    size = np.bincount(group, minlength=len(group))
    rank = last + 1 - size[group] + position_in_group(group, len(group))
    return _reorder_hits(a, _sorted_inside(group, a.hit_grade if merit is None else merit), rank)


def best_chunk_order(a: Assessment) -> Assessment:
    """The best order for `chunk_recall`: in every tie group the first chunks of relevant documents come first.

    Exact: of the first j chunks of a group, at most j are of documents not seen before, and at most as many as the
    group has hits that are not `hit_repeated`. It does not matter which chunk of a document is marked as repeated.

    >>> best_chunk_order(replace(EXAMPLE, hit_repeated=np.array([False, False, True]))).hit_grade.tolist()
    [2.0, 0.0, 1.0]
    """
    return best_order(a, _first_chunk_grade(a))


def worst_chunk_order(a: Assessment) -> Assessment:
    """A lower bound for `chunk_recall`: in every tie group the first chunks of relevant documents come last.

    Sound: each of a group's first j chunks adds a relevant document, except chunks that are repeated, not relevant or
    not in the pool. Exact unless the first chunk of a relevant document is tied with another chunk of that document.
    No order puts the repeated chunk before the first one, but the assessment does not say whose chunk it is.

    >>> worst_chunk_order(replace(EXAMPLE, hit_repeated=np.array([False, False, True]))).hit_grade.tolist()
    [2.0, 1.0, 0.0]
    """
    return worst_order(a, _first_chunk_grade(a))


def best_sample_order(a: Assessment, rel: float = 1.0) -> Assessment:
    """The best order for `inferred_ap`: some relevant documents, the unjudged ones, the other relevant ones, the rest.

    A relevant document below r relevant, n non-relevant and u unjudged documents of the pool, and below b others, adds
    (1 + (r+n+u)·s) / (1+r+n+u+b) with s = (r+ε)/(r+n+2ε). This falls with b, and with n (down to rank 1/ε = 100,000).
    With u it falls if s·(1+b) < 1, and rises otherwise. As s grows with r, the sign changes at most once inside a
    group, so one order gives every relevant document the n, u and b that are best for it.

    >>> best_sample_order(replace(EXAMPLE, hit_grade=np.array([2.0, -1.0, 1.0]))).hit_grade.tolist()
    [2.0, 1.0, -1.0]
    """
    a = best_order(a)
    relevant_above = hits.relevant_so_far(a, rel) - 1
    non_relevant_above = hits.non_relevant_so_far(a, rel)
    others_above = a.hit_rank - 1 - position_in_group(a.hit_query, a.queries)
    epsilon = incomplete.INFAP_EPSILON  # the kernel's own, or the last digits differ
    share = (relevant_above + epsilon) / (relevant_above + non_relevant_above + 2 * epsilon)
    early = share * (1 + others_above) <= 1
    relevant, unjudged = hits.is_relevant(a, rel), a.hit_grade < 0
    return best_order(a, np.select([relevant & early, unjudged, relevant], [3.0, 2.0, 1.0], 0.0))


def worst_sample_order(a: Assessment) -> Assessment:
    """A lower bound for `inferred_ap`: relevant documents last, unjudged ones above them but not counted in u.

    By the formula of `best_sample_order`, documents outside the pool and non-relevant ones lower the value most when
    they rank above. Unjudged documents of the pool can lower it above or below. Here they keep their ranks above the
    relevant ones of the group, but their rows come after, so that u does not count them. No real order gives a lower
    value; in a group without unjudged documents this is a real order, and the bound is exact.

    >>> b = worst_sample_order(replace(EXAMPLE, hit_grade=np.array([2.0, -1.0, 1.0])))
    >>> b.hit_grade.tolist(), b.hit_rank.tolist()
    ([2.0, 1.0, -1.0], [1, 5, 4])
    """
    a = worst_order(a)
    order = np.lexsort((a.hit_grade < 0, runs_of(a.hit_query, _tie_groups(a)[0])))
    return _reorder_hits(a, order, a.hit_rank[order])


def best_share_order(a: Assessment, rel: float = 1.0) -> Assessment:
    """The best order for a share of the judged documents of a cut ranking: non-relevant documents last in their ties.

    `judged_only` removes documents without a judgement from the cut, so they do not lower the share: they come after
    the relevant documents and before the non-relevant ones. Exact for r / j and r / (j + βR), with r relevant of j
    judged documents above the cut: both rise with each relevant document, and fall with each non-relevant one.

    >>> best_share_order(EXAMPLE).hit_rank.tolist(), best_share_order(EXAMPLE).hit_grade.tolist()
    ([1, 2, 5], [2.0, 1.0, 0.0])
    """
    return _non_relevant_at_end(best_order(a), rel, last=True)


def worst_share_order(a: Assessment, rel: float = 1.0) -> Assessment:
    """The mirror image of `best_share_order`: non-relevant documents first, then the unjudged ones, relevant ones last.

    >>> worst_share_order(EXAMPLE).hit_rank.tolist(), worst_share_order(EXAMPLE).hit_grade.tolist()
    ([1, 2, 5], [2.0, 0.0, 1.0])
    """
    return _non_relevant_at_end(worst_order(a), rel, last=False)


def _non_relevant_at_end(a: Assessment, rel: float, *, last: bool) -> Assessment:
    """The rankings with the non-relevant hits of every tie group at one end, its last or first ranks."""
    moved = (a.hit_grade >= 0) & (a.hit_grade < rel)
    first, final = _tie_groups(a)
    group = runs_of(a.hit_query, first)
    order = _sorted_inside(group, (moved if last else ~moved).astype(np.float64))
    at_end = moved[order] if last else ~moved[order]
    position = position_in_group(group, len(group))
    size = np.bincount(group, minlength=len(group))
    return _reorder_hits(a, order, np.where(at_end, final + 1 - size[group] + position, first + position))


@dataclass(frozen=True)
class Ties:
    """The effect of ties on a metric.

    `Ties.BY_GRADE` holds for every metric in which a higher grade never gains less and a higher rank never costs
    anything, such as nDCG; `Ties.ORDER_FREE` for those that do not depend on the order at all, such as recall
    without a cutoff.

    Attributes:
        lowest, highest: the rearrangements for which the metric's kernel gives the bounds.
        is_free: the metric does not depend on the order.
        is_share: the metric divides by the number of retrieved documents. If those without a judgement are removed from
            a cut ranking, the order decides how many are left.
    """

    lowest: Rearrange
    highest: Rearrange
    is_free: bool = False
    is_share: bool = False

    BY_GRADE: ClassVar["Ties"]
    ORDER_FREE: ClassVar["Ties"]


Ties.BY_GRADE = Ties(lambda a, _: worst_order(a), lambda a, _: best_order(a))
Ties.ORDER_FREE = Ties(lambda a, _: a, lambda a, _: a, is_free=True)
SHARE = Ties(worst_share_order, best_share_order)
"""For shares of judged documents above a cut, and for numbers of non-relevant ones."""
SAMPLE = Ties(lambda a, _: worst_sample_order(a), best_sample_order)
"""For `inferred_ap`. If a relevant document is tied with one that is in the pool but not judged, the lower bound may be
below the value of every order."""
CHUNKS = Ties(lambda a, _: worst_chunk_order(a), lambda a, _: best_chunk_order(a))
"""For `chunk_recall`. If the first chunk of a relevant document is tied with another chunk of it, the lower bound may
be below the value of every order."""


def bounds(
    a: Assessment,
    kernel: Kernel,
    options: Mapping[str, Any],
    ties: Ties | None,
    *,
    judged_only: bool = False,
    top_k: int | None = None,
    most: float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest value of a metric over all orders of tied documents.

    Queries are independent, so means of these bounds bound the mean.

    Args:
        a: n rankings with `hit_first` and `hit_last`.
        kernel: the metric.
        options: its keyword arguments.
        ties: the effect of ties on it; None if it is unknown: the bounds are 0 and `most` if a hit is tied.
        judged_only: remove documents without a judgement from the rearranged rankings.
        top_k: cut the rearranged rankings after this rank.
        most: the highest value that the metric can have.

    Returns:
        float64[n], float64[n]: lowest ≤ the value of the given order ≤ highest, bit for bit.

    Raises:
        ValueError: the assessment holds no ties.

    >>> from rankbeam.transforms.kernels.ranking import metrics
    >>> [bound.tolist() for bound in bounds(EXAMPLE, metrics.precision, {"cutoff": 2}, Ties.BY_GRADE)]
    [[0.5], [1.0]]
    """

    def measure(rankings: Assessment) -> FloatArray:
        seen = rankings.upto(top_k)
        return kernel(seen.judged_only() if judged_only else seen, **options)

    first, last = _tie_groups(a)
    value = measure(a)
    rel = options.get("rel", 1.0)  # the default of every kernel that has it
    if not (first < last).any():
        return value, value
    if ties is None or (ties is SAMPLE and top_k is not None):  # the extreme orders are not known
        tied = np.bincount(a.hit_query, weights=first < last, minlength=a.queries) > 0
        return np.where(tied, 0.0, value), np.where(tied, most, value)
    if judged_only and top_k is not None and ties.is_share:
        ties = SHARE  # the order decides how many documents above the cut are judged
    elif ties.is_free:
        if top_k is None:
            return value, value
        ties = Ties.BY_GRADE  # the order decides which documents are above the cut
    # The best order gives the lowest value of an error rate. Sums in another order may differ in the last bit, and
    # infAP beyond rank 100,000 in the eleventh digit.
    values = [value, *(measure(order(a, rel)) for order in (ties.lowest, ties.highest))]
    return np.min(values, axis=0), np.max(values, axis=0)


def _tie_groups(a: Assessment) -> tuple[IntArray, IntArray]:
    if a.hit_first is None or a.hit_last is None:
        raise ValueError("this assessment holds no ties: hit_first and hit_last are None")
    return a.hit_first, a.hit_last


def _first_chunk_grade(a: Assessment) -> FloatArray:
    """The grade of the first chunk of a document; -inf for its other chunks."""
    return np.where(a.hit_repeated, -np.inf, a.hit_grade)


def _sorted_inside(group: IntArray, key: FloatArray) -> IntArray:
    """The rows sorted by key inside every group; groups, and rows of equal key, keep their order."""
    unsorted = np.zeros(len(group), bool)
    unsorted[group[1:][(group[1:] == group[:-1]) & (key[1:] < key[:-1])]] = True
    rows = np.flatnonzero(unsorted[group])
    order = np.arange(len(group))
    order[rows] = rows[np.lexsort((key[rows], group[rows]))]
    return order


def _reorder_hits(a: Assessment, order: IntArray, rank: IntArray) -> Assessment:
    """The hits in another order inside their tie groups, whose members share query, first and last rank."""
    return replace(a, hit_rank=rank, hit_grade=a.hit_grade[order], hit_repeated=a.hit_repeated[order])
