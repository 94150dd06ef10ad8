"""The best of many scores, and the best units by BM25 without all weights (MaxScore: Turtle and Flood, 1995).

Rare terms come first. As soon as the remaining terms cannot lift a unit with none of the terms so far into the ranking,
only the few units that they can lift are scored, by all terms in the order of the query: so scores are those of
`Bm25Scorer.scores`, to the last bit.
"""

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.kernels.arrays import IntArray, SingleArray
from rankbeam.transforms.kernels.search.weights import Bm25Scorer

_COLUMNS = 4096
_FREQUENT = 16  # a term in at least one of 16 units: the bound is checked before it is added
_ROUNDING = float(np.finfo(np.float32).eps)


def top(scores: npt.NDArray[np.floating], count: int, baseline: float = 0.0) -> IntArray:
    """The positions of the highest scores, highest first; of equal scores the earlier position first.

    Args:
        scores: float[n].
        count: most positions.
        baseline: positions with this score are left out.

    Returns:
        int64[≤ count].

    >>> top(np.array([1.0, 3.0, 0.0, 3.0, 1.0]), 3).tolist()
    [1, 3, 0]
    """
    bound = score_bound(scores, count)
    candidates = np.flatnonzero(scores >= bound if bound > baseline else scores != baseline)
    if len(candidates) > count:
        candidate_scores = scores[candidates]
        threshold = np.partition(candidate_scores, len(candidates) - count)[len(candidates) - count]
        above, equal = candidates[candidate_scores > threshold], candidates[candidate_scores == threshold]
        candidates = np.sort(np.concatenate([above, equal[: count - len(above)]]))
    return candidates[np.argsort(-scores[candidates], kind="stable")]


def score_bound(scores: npt.NDArray[np.floating], count: int) -> float:
    """A score that at least `count` positions reach, and few others; minus infinity if there is no such bound.

    Scores are laid out in rows, and `count` of the columns have a maximum that reaches the bound. That takes a tenth of
    the time of a partition of all scores.

    >>> score_bound(np.arange(8192.0), 3)
    8189.0
    """
    rows = len(scores) // _COLUMNS
    if count > _COLUMNS // 4 or rows < 2:
        return -np.inf
    maxima = scores[: rows * _COLUMNS].reshape(rows, _COLUMNS).max(axis=0)
    return float(np.partition(maxima, _COLUMNS - count)[_COLUMNS - count])


def best(scorer: Bm25Scorer, terms: list[int], count: int) -> tuple[IntArray, SingleArray]:
    """The units with the highest scores, highest first, and their scores; of equal scores the earlier unit first.

    Args:
        scorer: scorer of the units.
        terms: the query's terms.
        count: most units.
    """
    units = _candidates(scorer, terms, count)
    if units is None:
        scores, baseline = scorer.scores(terms)
        places = top(scores, count, float(baseline))
        return places, scores[places]
    scores = scorer.scores_of(units, terms)
    places = top(scores, count, -np.inf)
    return units[places], scores[places]


def _candidates(scorer: Bm25Scorer, terms: list[int], count: int) -> IntArray | None:
    """Units that include the best, ascending; None if all have to be scored."""
    units = len(scorer.postings.length)
    order = sorted(terms, key=scorer.frequency)
    most = np.array([scorer.most(term) for term in order])
    rounding = _ROUNDING * (len(terms) + 2) * (most.sum() + float(scorer.baseline(terms)))
    after = np.append(np.cumsum(most[::-1])[::-1][1:], 0.0) + rounding
    scores = np.zeros(units, np.float32)
    for number, term in enumerate(order, 1):
        unit, weight = scorer.weights(term)
        scores[unit] += weight
        if number == len(order) or scorer.frequency(order[number]) * _FREQUENT > units:
            bound = score_bound(scores, count) - after[number - 1]
            if bound > 0:
                places = np.flatnonzero(scores >= bound)
                return _prune_units(
                    scorer, places, scores[places], list(zip(order, after, strict=True))[number:], count
                )
    return None


def _prune_units(
    scorer: Bm25Scorer, units: IntArray, scores: SingleArray, remaining: list[tuple[int, float]], count: int
) -> IntArray:
    """The units that can still be among the best.

    Args:
        scorer: scorer of the units.
        units: int64[n], ascending; at least `count`.
        scores: float32[n], without the remaining terms.
        remaining: terms, and for each the most that all terms after it add.
        count: number of units.
    """
    for term, after in remaining:
        scorer.add(term, units, scores)
        can_be_best = scores >= np.partition(scores, len(scores) - count)[len(scores) - count] - after
        units, scores = units[can_be_best], scores[can_be_best]
    return units
