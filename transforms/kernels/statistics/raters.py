"""Agreement of people, or of a person and a judge, on the same items: shares of equal decisions, and coefficients.

Ratings are whole numbers: the position of a decision on its scale of k categories, -1 if an annotator has none. No
coefficient suffices alone: if 98% of the decisions are "yes", two annotators with 96% equal decisions may have a
kappa below 0 and an AC1 of .96, since kappa measures agreement beyond what such unequal shares give by chance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray

MISSING = -1

Counts = IntArray | FloatArray  # a confusion matrix, of items or of weighted ones


def category_weights(categories: int, *, is_ordered: bool) -> FloatArray:
    """Weight of a pair of categories, from 0 to 1: quadratic by distance on an ordered scale, else only equal ones.

    Args:
        categories: k, at least 2.
        is_ordered: the categories are an ordered scale.

    Returns:
        float64[k, k].

    >>> category_weights(3, is_ordered=True).tolist()
    [[1.0, 0.75, 0.0], [0.75, 1.0, 0.75], [0.0, 0.75, 1.0]]
    """
    if not is_ordered:
        return np.eye(categories)
    place = np.arange(categories)
    weights: FloatArray = 1.0 - ((place[:, None] - place) / (categories - 1)) ** 2
    return weights


def confusion(first: IntArray, second: IntArray, categories: int) -> IntArray:
    """Number of items by the category of one annotator (row) and of the other (column).

    Args:
        first: int64[n].
        second: int64[n]; items without a decision of both are left out.
        categories: k.

    Returns:
        int64[k, k].

    >>> confusion(np.array([0, 1, 1]), np.array([0, 0, 1]), 2).tolist()
    [[1, 0], [1, 1]]
    """
    both = (first >= 0) & (second >= 0)
    counts = np.bincount(first[both] * categories + second[both], minlength=categories * categories)
    matrix: IntArray = counts.reshape(categories, categories)
    return matrix


def resampled_confusions(
    first: IntArray,
    second: IntArray,
    group: IntArray,
    categories: int,
    replicates: int = 1000,
    seed: int = 0,
    weight: FloatArray | None = None,
) -> Sequence[Counts]:
    """Confusion matrices of bootstrap samples of groups, such as queries, each drawn whole.

    Args:
        first: int64[n], categories of one annotator.
        second: int64[n], categories of the other.
        group: int64[n].
        categories: k.
        replicates: number of samples.
        seed: random seed.
        weight: float64[n], number of items that each one represents; None for 1.

    Returns:
        int64[k, k] by sample, float64[k, k] with weights; none for fewer than two groups.

    >>> len(resampled_confusions(np.array([0, 1]), np.array([0, 1]), np.array([0, 1]), 2, 5))
    5
    """
    distinct, place = np.unique(group, return_inverse=True)
    if len(distinct) < 2:
        return []
    group_counts = np.zeros((len(distinct), categories * categories), np.int64 if weight is None else np.float64)
    np.add.at(group_counts, (place, first * categories + second), 1 if weight is None else weight)
    shares = np.full(len(distinct), 1.0 / len(distinct))
    weights = np.random.default_rng(seed).multinomial(len(distinct), shares, replicates)
    return list((weights @ group_counts).reshape(replicates, categories, categories))


def observed_agreement(counts: Counts) -> float | None:
    """The share of equal decisions in a confusion matrix; None without items."""
    total = float(counts.sum())
    return float(np.trace(counts)) / total if total else None


def cohen(counts: Counts, *, is_ordered: bool = False) -> float | None:
    """Cohen's kappa: agreement beyond chance, by `category_weights`: "Weighted kappa", Psychological Bulletin 1968.

    Args:
        counts: int64[k, k] or float64[k, k], a confusion matrix.
        is_ordered: the categories are an ordered scale.

    Returns:
        At most 1; None without items, and if both annotators chose one category only.

    >>> [round(cohen(np.array([[a, b], [c, d]])), 3) for a, b, c, d in ((96, 2, 2, 0), (94, 2, 2, 2), (50, 2, 2, 46))]
    [-0.02, 0.479, 0.92]
    """
    total = float(counts.sum())
    apart = 1.0 - category_weights(len(counts), is_ordered=is_ordered)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / (total or 1.0)
    chance = float((apart * expected).sum())
    return 1.0 - float((apart * counts).sum()) / chance if total and chance > 0.0 else None


def gwet(ratings: IntArray, categories: int, *, is_ordered: bool = False) -> float | None:
    """Gwet's AC1, or AC2 if ordered: "Computing inter-rater reliability in the presence of high agreement", 2008.

    Args:
        ratings: int64[n, r], by item and annotator.
        categories: k of the scale, also those that nobody chose.
        is_ordered: the categories are an ordered scale.

    Returns:
        At most 1; 1 if all decisions are one category; None if no item has two ratings.

    >>> gwet(np.array([[0, 0], [0, 0]]), 2)
    1.0
    """
    weights = category_weights(categories, is_ordered=is_ordered)
    counts = _counts(ratings, categories)
    raters = counts.sum(axis=1)
    rated, several = counts[raters >= 1], counts[raters >= 2]
    if not len(several):
        return None
    sizes = several.sum(axis=1)
    agreement = float(((several * (several @ weights - 1.0)).sum(axis=1) / (sizes * (sizes - 1.0))).mean())
    return _beyond_chance(agreement, weights, (rated / rated.sum(axis=1)[:, None]).mean(axis=0))


def gwet_of(counts: Counts, *, is_ordered: bool = False) -> float | None:
    """As `gwet`, for a confusion matrix.

    >>> round(gwet_of(np.array([[96, 2], [2, 0]])), 3)
    0.958
    """
    total, weights = float(counts.sum()), category_weights(len(counts), is_ordered=is_ordered)
    if not total:
        return None
    shares = (counts.sum(axis=0) + counts.sum(axis=1)) / (2.0 * total)
    return _beyond_chance(float((weights * counts).sum()) / total, weights, shares)


def _beyond_chance(agreement: float, weights: FloatArray, shares: FloatArray) -> float:
    """Agreement beyond Gwet's chance, which follows from the shares of the categories."""
    pairs = max(1, len(shares) * (len(shares) - 1))
    chance = float(weights.sum()) * float((shares * (1.0 - shares)).sum()) / pairs
    return (agreement - chance) / (1.0 - chance)


def _counts(ratings: IntArray, categories: int) -> FloatArray:
    """float64[n, k], by item and category the number of ratings."""
    return np.stack([(ratings == category).sum(axis=1) for category in range(categories)], axis=1).astype(np.float64)


def krippendorff(ratings: IntArray, categories: int, *, is_ordered: bool = False) -> float | None:
    """Krippendorff's alpha, for annotators who rated different items: "Content analysis", 2004.

    Args:
        ratings: int64[n, r], by item and annotator; items with one rating are left out.
        categories: k of the scale.
        is_ordered: the categories are an ordered scale; else all differences are equal.

    Returns:
        At most 1; None if no item has two ratings, and if all decisions are one category.

    >>> krippendorff(np.array([[0, 0], [1, 1], [0, -1]]), 2)
    1.0
    """
    counts = _counts(ratings, categories)
    counts = counts[counts.sum(axis=1) >= 2]
    pairs = np.einsum("ia,ib->iab", counts, counts)
    pairs[:, range(categories), range(categories)] -= counts
    coincidences = (pairs / (counts.sum(axis=1) - 1.0)[:, None, None]).sum(axis=0)
    totals = coincidences.sum(axis=0)
    distance = _ordinal_distance(totals) if is_ordered else 1.0 - np.eye(categories)
    chance = float((np.outer(totals, totals) * distance).sum()) / max(1.0, float(totals.sum()) - 1.0)
    return 1.0 - float((coincidences * distance).sum()) / chance if chance > 0.0 else None


def _ordinal_distance(totals: FloatArray) -> FloatArray:
    """The squared distance of categories, by the number of ratings between them."""
    middle = np.cumsum(totals) - totals / 2.0
    between: FloatArray = (middle[:, None] - middle) ** 2
    return between


def kendall_tau_b(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Kendall's τ-b of two lists of scores; None if all values of either are equal.

    >>> round(kendall_tau_b([0.61, 0.55, 0.70, 0.42, 0.42], [0.5, 0.52, 0.66, 0.40, 0.31]), 7)
    0.7378648
    """
    above = np.triu_indices(len(first), 1)
    one, other = (np.sign(np.subtract.outer(item, item))[above] for item in (np.array(first), np.array(second)))
    spread = math.sqrt(float((one != 0).sum()) * float((other != 0).sum()))
    return float((one * other).sum()) / spread if spread else None


def tau_ap(human: Sequence[float], judge: Sequence[float]) -> float | None:
    """Agreement of the judge's order of systems with the humans', above all at its top.

    Yilmaz, Aslam and Robertson, "A new rank correlation coefficient for information retrieval", SIGIR 2008:
    2/(n - 1)·ΣC(i)/(i - 1) - 1 over i from 2 in the judge's order, where C(i) counts the systems above i that humans
    also place above i. Pairs that humans or the judge do not order count 0.

    Args:
        human: scores of n systems.
        judge: scores of the same systems.

    Returns:
        From -1 to 1; None for fewer than two systems.

    >>> [round(tau_ap([0.61, 0.55, 0.70, 0.42, 0.40], [0.5, 0.52, j, 0.40, 0.31]), 6) for j in (0.66, 0.51)]
    [0.75, 0.25]
    """
    if len(human) < 2:
        return None
    order = sorted(range(len(judge)), key=lambda i: -judge[i])
    shares = [
        sum(judge[above] > judge[i] and human[above] > human[i] for above in order[:place]) / place
        for place, i in enumerate(order)
        if place
    ]
    return 2.0 * math.fsum(shares) / (len(human) - 1) - 1.0


@dataclass(frozen=True)
class DecisionAgreement:
    """Comparisons of pairs of systems, decided by humans and by the judge."""

    pairs: int  # number of pairs
    equal: int  # pairs with the same decision: better, worse, or not significant
    opposite: int  # pairs that the judge finds significant and humans find significant the other way; should be 0

    @property
    def share(self) -> float | None:
        """The share of equal decisions; None without pairs."""
        return self.equal / self.pairs if self.pairs else None


def decision_agreement(human: Sequence[int], judge: Sequence[int]) -> DecisionAgreement:
    """Compare decisions about pairs of systems.

    Args:
        human: per pair 1 better, -1 worse, 0 not significant.
        judge: decisions about the same pairs.

    >>> decision_agreement([1, 0, -1], [1, 1, 1]).opposite
    1
    """
    pairs = list(zip(human, judge, strict=True))
    return DecisionAgreement(len(pairs), sum(a == b for a, b in pairs), sum(a * b < 0 for a, b in pairs))


def decisive_vote(ranks: Sequence[float], voters: int) -> int | None:
    """Position of the lower median of all votes; None if the missing votes could change it.

    Of an even number of votes it is the lower middle one: a claim counts as supported if more than half support it.

    Args:
        ranks: position on the scale of each vote that exists, in the order of the judges.
        voters: number of judges, at least that of the votes.

    >>> decisive_vote([2, 0, 2], 3), decisive_vote([0, 2], 2), decisive_vote([2, 2], 3), decisive_vote([2, 0], 3)
    (0, 0, 0, None)
    """
    if voters < len(ranks):
        raise ValueError(f"{len(ranks)} votes of {voters} voters")
    ordered, middle = sorted(ranks), (voters - 1) // 2
    lowest = middle - (voters - len(ranks))  # the position of the median if all missing votes were lower
    if lowest < 0 or middle >= len(ranks) or ordered[lowest] != ordered[middle]:
        return None
    return list(ranks).index(ordered[middle])
