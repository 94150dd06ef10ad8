"""How far ties reach: the lowest and the highest value of a metric over all orders of documents of equal score.

trec_eval breaks ties by document id, which says nothing about quality (Cabanac et al., "Tie-breaking bias: effect of
an uncontrolled parameter on information retrieval evaluation", CLEF 2010). McSherry and Najork ("Computing information
retrieval performance measures efficiently in the presence of tied scores", ECIR 2008) average over the orders; here are
the extremes. Nothing is searched: the hits of every tie group are put in the best or the worst order, and the ordinary
kernel scores the result. `TIES` says which order serves which metric, and whether it is exact.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray, position_in_group
from rankbeam.transforms.kernels.ranking import hits, metrics
from rankbeam.transforms.kernels.ranking.rankings import Assessment

Kernel = Callable[..., FloatArray]
Rearrange = Callable[[Assessment, float], Assessment]
"""From an assessment and the lowest relevant grade to the same rankings with their ties in another order."""

EXAMPLE = replace(hits.EXAMPLE, hit_first=np.array([1, 2, 2]), hit_last=np.array([1, 5, 5]))
"""`hits.EXAMPLE` with the documents at ranks 2 to 5 tied: grades 0 and 1, and two that are not in the pool."""


class Exactness(Enum):
    """What is known about the two bounds of a metric."""

    EXACT = "some order of the tied documents reaches each bound"
    BOUNDED = "some order reaches the highest value; none is below the lowest, but none need reach it"
    ORDER_FREE = "the metric does not depend on the order"


def luckiest(a: Assessment, merit: FloatArray | None = None) -> Assessment:
    """The rankings with the hits of every tie group at the group's first ranks, those of highest merit first.

    With the grade for merit this is the best order for all metrics that let a document of a higher grade gain at least
    as much (one that is not in the pool, or has a grade below 0, gains nothing) and never lose by standing one rank
    higher: swap two neighbours of which the lower one has the higher grade, and no such metric falls; repeat until the
    group is sorted. The order depends neither on `rel` nor on the cutoff, so it is best for all of them at once.

    Args:
        a: n rankings with `hit_first` and `hit_last`.
        merit: float64[h], by which hits are sorted; None for their grades.

    Returns:
        The assessment with other `hit_rank`, and `hit_grade` and `hit_repeated` permuted alike.

    Raises:
        ValueError: the assessment does not know its ties.

    >>> luckiest(EXAMPLE).hit_rank.tolist(), luckiest(EXAMPLE).hit_grade.tolist()
    ([1, 2, 3], [2.0, 1.0, 0.0])
    """
    first, _ = _tie_groups(a)
    group = _runs(a.hit_query, first)
    rank = first + position_in_group(group, len(group))
    return _permuted(a, _sorted_inside(group, -(a.hit_grade if merit is None else merit)), rank)


def unluckiest(a: Assessment, merit: FloatArray | None = None) -> Assessment:
    """The rankings with the hits of every tie group at the group's last ranks, those of highest merit last.

    The mirror image of `luckiest`, and worst for the same metrics by the same exchange.

    >>> unluckiest(EXAMPLE).hit_rank.tolist(), unluckiest(EXAMPLE).hit_grade.tolist()
    ([1, 4, 5], [2.0, 0.0, 1.0])
    """
    first, last = _tie_groups(a)
    group = _runs(a.hit_query, first)
    size = np.bincount(group, minlength=len(group))
    rank = last + 1 - size[group] + position_in_group(group, len(group))
    return _permuted(a, _sorted_inside(group, a.hit_grade if merit is None else merit), rank)


def luckiest_chunks(a: Assessment) -> Assessment:
    """Best for `chunk_recall`: in every tie group the first chunks of relevant documents stand in front.

    Exact: among the first j chunks of a group at most j are of documents not seen before, and no more than the
    group's hits that are not `hit_repeated`, whichever chunk of a document bears that mark.

    >>> luckiest_chunks(replace(EXAMPLE, hit_repeated=np.array([False, False, True]))).hit_grade.tolist()
    [2.0, 0.0, 1.0]
    """
    return luckiest(a, _newness(a))


def unluckiest_chunks(a: Assessment) -> Assessment:
    """A lower bound for `chunk_recall`: in every tie group the first chunks of relevant documents stand last.

    Sound: of a group's first j chunks all are new relevant documents but those that are repeated, not relevant or not
    in the pool. Exact unless the first chunk of a relevant document is tied with another chunk of it: that one can not
    really stand before the first, but whose chunk it is the assessment does not say.

    >>> unluckiest_chunks(replace(EXAMPLE, hit_repeated=np.array([False, False, True]))).hit_grade.tolist()
    [2.0, 1.0, 0.0]
    """
    return unluckiest(a, _newness(a))


def luckiest_sample(a: Assessment, rel: float = 1.0) -> Assessment:
    """Best for `inferred_ap`: some relevant documents, those pooled but not judged, the other relevant ones, the rest.

    Below r relevant, n non-relevant and u unjudged documents of the pool and b others, a relevant document adds
    (1 + (r+n+u)·s) / (1+r+n+u+b) with s = (r+ε)/(r+n+2ε). That falls with b, and with n (down to rank 1/ε = 100,000);
    with u it falls where s·(1+b) < 1 and rises elsewhere. As s grows with r, this turns at most once inside a group,
    so one order gives every relevant document the n, u and b that are best for it.

    >>> luckiest_sample(replace(EXAMPLE, hit_grade=np.array([2.0, -1.0, 1.0]))).hit_grade.tolist()
    [2.0, 1.0, -1.0]
    """
    a = luckiest(a)
    relevant_above = hits.relevant_so_far(a, rel) - 1
    non_relevant_above = hits.non_relevant_so_far(a, rel)
    others_above = a.hit_rank - 1 - position_in_group(a.hit_query, a.queries)
    epsilon = metrics._INFAP_EPSILON  # the kernel's own, or the last digits differ
    share = (relevant_above + epsilon) / (relevant_above + non_relevant_above + 2 * epsilon)
    early = share * (1 + others_above) <= 1
    relevant, unjudged = hits.is_relevant(a, rel), a.hit_grade < 0
    return luckiest(a, np.select([relevant & early, unjudged, relevant], [3.0, 2.0, 1.0], 0.0))


def unluckiest_sample(a: Assessment) -> Assessment:
    """A lower bound for `inferred_ap`: relevant documents last, those pooled but not judged above, yet not counted.

    By the formula of `luckiest_sample` the documents outside the pool and the non-relevant ones do most harm above.
    Unjudged ones of the pool can do harm either way: here they keep their ranks above the relevant ones of the group,
    but their rows follow, so that u leaves them out. No order is as bad; without them this is an order, and exact.

    >>> b = unluckiest_sample(replace(EXAMPLE, hit_grade=np.array([2.0, -1.0, 1.0])))
    >>> b.hit_grade.tolist(), b.hit_rank.tolist()
    ([2.0, 1.0, -1.0], [1, 5, 4])
    """
    a = unluckiest(a)
    by = np.lexsort((a.hit_grade < 0, _runs(a.hit_query, _tie_groups(a)[0])))
    return _permuted(a, by, a.hit_rank[by])


def luckiest_share(a: Assessment, rel: float = 1.0) -> Assessment:
    """Best for a share of the judged documents of a cut ranking: in every tie group the non-relevant ones stand last.

    What `judged_only` takes out of the cut costs no share, so documents without a judgement are better than
    non-relevant ones: they stand between these and the relevant ones. Exact for r / j and r / (j + βR), of r relevant
    of j judged documents above the cut: both rise with a relevant one, and fall with another.

    >>> luckiest_share(EXAMPLE).hit_rank.tolist(), luckiest_share(EXAMPLE).hit_grade.tolist()
    ([1, 2, 5], [2.0, 1.0, 0.0])
    """
    return _parted(luckiest(a), _is_other(luckiest(a), rel), last=True)


def unluckiest_share(a: Assessment, rel: float = 1.0) -> Assessment:
    """The mirror image of `luckiest_share`: non-relevant documents first, relevant ones last, and the rest between.

    >>> unluckiest_share(EXAMPLE).hit_rank.tolist(), unluckiest_share(EXAMPLE).hit_grade.tolist()
    ([1, 2, 5], [2.0, 0.0, 1.0])
    """
    return _parted(unluckiest(a), _is_other(unluckiest(a), rel), last=False)


def _is_other(a: Assessment, rel: float) -> BoolArray:
    """Which hits are judged and not relevant."""
    other: BoolArray = (a.hit_grade >= 0) & (a.hit_grade < rel)
    return other


def _parted(a: Assessment, moved: BoolArray, *, last: bool) -> Assessment:
    """The rankings with some hits of every tie group at its last ranks, or first, and the others at the other end."""
    first, final = _tie_groups(a)
    group = _runs(a.hit_query, first)
    by = _sorted_inside(group, (moved if last else ~moved).astype(np.float64))
    at_end = moved[by] if last else ~moved[by]
    place = position_in_group(group, len(group))
    size = np.bincount(group, minlength=len(group))
    return _permuted(a, by, np.where(at_end, final + 1 - size[group] + place, first + place))


@dataclass(frozen=True)
class Ties:
    """What ties do to a metric.

    Attributes:
        lowest, highest: the rearrangements that the kernel turns into the bounds.
        exactness: what is known about the bounds.
        exact_unless: for BOUNDED ones, when the lowest value may be below what any order gives.
    """

    lowest: Rearrange
    highest: Rearrange
    exactness: Exactness = Exactness.EXACT
    exact_unless: str = ""


_GRADES = Ties(lambda a, _: unluckiest(a), lambda a, _: luckiest(a))
_NONE = Ties(lambda a, _: a, lambda a, _: a, Exactness.ORDER_FREE)
_SHARE = Ties(unluckiest_share, luckiest_share)
_SAMPLE = Ties(
    lambda a, _: unluckiest_sample(a),
    luckiest_sample,
    Exactness.BOUNDED,
    "a relevant document is tied with one that is in the pool but not judged",
)
_CHUNKS = Ties(
    lambda a, _: unluckiest_chunks(a),
    lambda a, _: luckiest_chunks(a),
    Exactness.BOUNDED,
    "the first chunk of a relevant document is tied with another chunk of it",
)

_BY_GRADE: tuple[Kernel, ...] = (
    *(metrics.ndcg, metrics.precision, metrics.recall, metrics.capped_recall, metrics.f1, metrics.reciprocal_rank),
    *(metrics.average_precision, metrics.success, metrics.r_precision, metrics.bpref, metrics.judged),
    *(metrics.rank_biased_precision, metrics.expected_reciprocal_rank, metrics.chunk_precision, metrics.chunk_ndcg),
)
_OF_THE_JUDGED: tuple[Kernel, ...] = (metrics.set_precision, metrics.set_f, metrics.chunk_precision)
_OF_THE_SET: tuple[Kernel, ...] = (
    *(metrics.set_precision, metrics.set_recall, metrics.set_f),
    *(metrics.num_retrieved, metrics.num_relevant, metrics.num_relevant_retrieved),
)

TIES: Mapping[Kernel, Ties] = MappingProxyType(
    dict.fromkeys(_BY_GRADE, _GRADES)
    | dict.fromkeys(_OF_THE_SET, _NONE)
    | {metrics.inferred_ap: _SAMPLE, metrics.chunk_recall: _CHUNKS}
)
"""What ties do to each metric."""


def bounds(
    a: Assessment,
    kernel: Kernel,
    options: Mapping[str, Any],
    *,
    judged_only: bool = False,
    top_k: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest value of a metric over all orders of tied documents.

    Queries are independent, so means of these bounds bound the mean.

    Args:
        a: n rankings with `hit_first` and `hit_last`.
        kernel: one of `TIES`.
        options: its keyword arguments.
        judged_only: documents without a judgement are taken out of the rearranged rankings.
        top_k: the rearranged rankings are cut there.

    Returns:
        float64[n], float64[n]: lowest ≤ the value of the given order ≤ highest, bit for bit.

    Raises:
        ValueError: the assessment does not know its ties.

    >>> [bound.tolist() for bound in bounds(EXAMPLE, metrics.precision, {"cutoff": 2})]
    [[0.5], [1.0]]
    """

    def measure(rankings: Assessment) -> FloatArray:
        seen = rankings.upto(top_k)
        return kernel(seen.judged_only() if judged_only else seen, **options)

    first, last = _tie_groups(a)
    value = measure(a)
    rel = options.get("rel", 1.0)  # the default of every kernel that has it
    ties = TIES[kernel]
    if ties.exactness is Exactness.ORDER_FREE:
        ties = _NONE if top_k is None else _GRADES  # a cut set is a matter of order
    if judged_only and top_k is not None and kernel in _OF_THE_JUDGED:
        ties = _SHARE  # and so is how many documents of the cut are judged
    if ties is _NONE or not (first < last).any():
        return value, value
    if ties is _SAMPLE and top_k is not None:  # which order is extreme is not known, but infAP lies in [0, 1]
        tied = np.bincount(a.hit_query, weights=first < last, minlength=a.queries) > 0
        return np.where(tied, 0.0, value), np.where(tied, 1.0, value)
    lowest, highest = (measure(order(a, rel)) for order in (ties.lowest, ties.highest))
    # Sums in another order may differ in the last bit, and infAP beyond rank 100,000 in the eleventh digit.
    return np.minimum(lowest, value), np.maximum(highest, value)


def _tie_groups(a: Assessment) -> tuple[IntArray, IntArray]:
    if a.hit_first is None or a.hit_last is None:
        raise ValueError("this assessment does not know its ties: hit_first and hit_last are None")
    return a.hit_first, a.hit_last


def _runs(query: IntArray, group: IntArray) -> IntArray:
    """int64[m], 0, 0, 1, …: one number for neighbouring rows of the same query and group."""
    changes = (query[1:] != query[:-1]) | (group[1:] != group[:-1])
    return np.cumsum(np.concatenate([[False], changes])[: len(query)])


def _newness(a: Assessment) -> FloatArray:
    """The grade, but a chunk of a document that was seen before comes after all others."""
    return np.where(a.hit_repeated, -np.inf, a.hit_grade)


def _sorted_inside(group: IntArray, key: FloatArray) -> IntArray:
    """The rows of every group by ascending key; groups, and rows of equal key, stay where they are."""
    unsorted = np.zeros(len(group), bool)
    unsorted[group[1:][(group[1:] == group[:-1]) & (key[1:] < key[:-1])]] = True
    rows = np.flatnonzero(unsorted[group])
    order = np.arange(len(group))
    order[rows] = rows[np.lexsort((key[rows], group[rows]))]
    return order


def _permuted(a: Assessment, by: IntArray, rank: IntArray) -> Assessment:
    """The hits in another order inside their tie groups, where query, first and last rank are the same for all."""
    return replace(a, hit_rank=rank, hit_grade=a.hit_grade[by], hit_repeated=a.hit_repeated[by])
