"""Picking the best of several configurations: from bootstrap replicates that line up between them, or by their cost.

The mean of the winner is too high on average, and often others are as good. Intervals that hold
for all at once also hold for the winner, and the subset of configurations that may be the best
shows how much the queries can decide. Both account for the dependence between configurations, which saw the same
queries, by the bootstrap, as in White, "A reality check for data snooping", Econometrica 2000.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, one_thread
from rankbeam.transforms.kernels.statistics.estimates import Estimate
from rankbeam.transforms.kernels.statistics.intervals import student_t_tail

_ROUNDING = 1e-12
_CLOSE = 1e-9  # of the largest replicate; sums are off by far less
_SIMILAR = 1e-6  # share of two variances, or of values, below which the variance of a difference loses digits
_ROWS = 64  # of replicates, which stay in the processor's cache
_LEAST_TAIL = 1e-100  # the quantile still has a square


def joint_intervals(
    estimates: Sequence[Estimate], replicates: FloatArray, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Intervals that cover the true means of all configurations at once.

    The `confidence` quantile over replicates b of max_i |replicates[i, b] - means[i]| / standard_errors[i] (the max-|t|
    method; Romano and Wolf, "Exact and approximate stepdown methods", JASA 2005), with `_tail` for few queries, says
    how far in its own tail each interval must end. There it is the interval that `Estimate` gives to a configuration
    alone. A configuration without spread has no replicates to learn from: it takes its equal share of the probability
    of an error (Bonferroni), and the others the rest.

    Args:
        estimates: the estimates of k configurations.
        replicates: float64[k, B], bootstrap means; column b is the same resample for all configurations. Columns in
            which a configuration has NaN are left out.
        confidence: share of samples for which all intervals cover.

    Returns:
        float64[k] lower and float64[k] upper ends. NaN for a configuration without a mean, a standard error or
        replicates, which does not count for the others, and for all if one has fewer than two queries.

    Raises:
        ValueError: the confidence is not between 0 and 1.
    """
    _check(confidence)
    low, high = np.full(len(estimates), np.nan), np.full(len(estimates), np.nan)
    means = np.array([estimate.mean for estimate in estimates], np.float64)
    errors = np.array([estimate.standard_error for estimate in estimates], np.float64)
    present, aligned = _usable(means, replicates, np.isfinite(errors))
    places = np.flatnonzero(present).tolist()
    count = min((estimates[i].count for i in places), default=0)
    if count < 2 or not aligned.shape[1]:
        return low, high
    centre, error = means[present], errors[present]
    varies, wrong = error > 0.0, 1.0 - confidence
    alone = wrong / (2 * len(centre))
    together = alone
    if varies.any():
        distances = np.abs(aligned[varies] - centre[varies, np.newaxis]) / error[varies, np.newaxis]
        furthest = float(np.quantile(distances.max(axis=0), 1.0 - wrong * varies.mean()))
        together = max(_tail(furthest, count), _LEAST_TAIL)
    for i, differs in zip(places, varies.tolist(), strict=True):
        low[i], high[i] = estimates[i].interval(together if differs else alone)
    return low, high


def may_be_best(means: FloatArray, replicates: FloatArray, count: float, confidence: float = 0.95) -> BoolArray:
    """The configurations without a significant difference from the best; with this confidence, the best is among them.

    Subset selection (Gupta, "On some multiple decision (selection and ranking) rules", Technometrics 1965) by
    one-sided comparisons of each with all others (Dunnett, JASA 1955). Configuration i differs from the best if

        max_j (means[j] - means[i]) / s[i, j]

    exceeds the `confidence` quantile over replicates of the same maximum of the centred differences,

        max_j ((replicates[j, b] - replicates[i, b]) - (means[j] - means[i])) / s[i, j],

    widened for few queries as `_tail` says. s[i, j] is the standard error of the difference of i and j: its standard
    deviation over replicates, times √(n/(n - 1)). If that is 0, to rounding, every query has the same difference, and
    the sign test says whether n are enough: 2^-n is at most (1 - confidence) / (k - 1).

    Args:
        means: float64[k].
        replicates: float64[k, B], bootstrap means; column b is the same resample for all configurations. Columns in
            which a configuration has NaN are left out.
        count: number of queries n.
        confidence: probability that the truly best one is among those returned.

    Returns:
        bool[k]. True for the highest mean; False for a configuration without a mean or replicates. Below two queries,
        or with fewer than two replicates, True for all others.

    Raises:
        ValueError: the confidence is not between 0 and 1.

    >>> draws = np.random.default_rng(1).normal(0.0, 0.01, (3, 500))
    >>> means = np.array([0.50, 0.51, 0.30])
    >>> may_be_best(means, means[:, np.newaxis] + draws, 50).tolist()
    [True, True, False]
    """
    _check(confidence)
    present, aligned = _usable(means, replicates, np.ones(len(means), np.bool_))
    if count < 2 or aligned.shape[1] < 2 or not present.any():
        return present
    centre = means[present]
    rounding = _ROUNDING * max(float(np.abs(aligned).max()), float(np.abs(centre).max()))
    screened = _screen(centre, aligned, rounding, count, confidence)
    left = np.array(
        [
            not (_is_beaten(i, centre, aligned, rounding, count, confidence) if beaten is None else beaten)
            for i, beaten in enumerate(screened)
        ]
    )
    best = present.copy()
    best[present] = left | (centre == centre.max())
    return best


def _screen(
    means: FloatArray, replicates: FloatArray, rounding: float, count: float, confidence: float
) -> Iterator[bool | None]:
    """For each of k configurations, the value of `_is_beaten`; None if that is too close, or a spread near 0.

    The quantile of the maximum is not needed: it is enough to count the replicates in which the maximum exceeds the
    quantile at which a configuration would just be beaten. The exact answer needs several times as long.
    """
    rows = replicates - means[:, np.newaxis]
    drift = rows.mean(axis=1)
    rows -= drift[:, np.newaxis]
    squares, top, tolerance = np.einsum("jb,jb->j", rows, rows), rows.max(axis=0), _CLOSE * np.abs(rows).max()
    place = confidence * (rows.shape[1] - 1)
    enough_below, enough_above = math.ceil(place) + 1, rows.shape[1] - math.floor(place)
    for i, row in enumerate(rows):
        with one_thread():
            variances = squares + squares[i] - 2.0 * (rows @ row)
        others = np.arange(len(rows)) != i
        least = np.maximum(_SIMILAR * (squares + squares[i]), rows.shape[1] * (rounding / _SIMILAR) ** 2)
        if (variances <= least)[others].any():
            yield None
            continue
        scale = np.sqrt(np.maximum(variances, 0.0) / rows.shape[1] * (count / (count - 1)))
        lead = max(((means - means[i])[others] / scale[others]).tolist(), default=0.0)
        tail = student_t_tail(lead, count - 1) if lead > 0.0 else 0.5
        if not _LEAST_TAIL < tail < 0.5:
            yield False if lead <= 0.0 else None
            continue
        quantile = -NormalDist().inv_cdf(tail) / math.sqrt(count / (count - 1))
        offsets, limit = np.where(others, drift - quantile * scale, -np.inf), row + drift[i]
        if np.count_nonzero(top + offsets.max() < limit - tolerance) >= enough_below:
            yield True
            continue
        highest = np.full(len(row), -np.inf)
        for start in range(0, len(rows), _ROWS):
            block = slice(start, start + _ROWS)
            np.maximum(highest, (rows[block] + offsets[block, np.newaxis]).max(axis=0), out=highest)
            if np.count_nonzero(highest > limit + tolerance) >= enough_above:
                yield False
                break
        else:
            yield True if np.count_nonzero(highest < limit - tolerance) >= enough_below else None


def _is_beaten(
    i: int, means: FloatArray, replicates: FloatArray, rounding: float, count: float, confidence: float
) -> bool:
    gains = means - means[i]
    excess = replicates - replicates[i]
    excess -= gains[:, np.newaxis]
    drift = excess.mean(axis=1)
    variance = np.einsum("jb,jb->j", excess, excess) / excess.shape[1] - drift**2
    spread = np.sqrt(np.maximum(variance, 0.0))
    certain = spread <= rounding
    is_enough = 0.5**count * (len(means) - 1) <= 1.0 - confidence
    if is_enough and (gains[certain] > rounding).any():
        return True
    open_ones = np.flatnonzero(~certain)
    if not len(open_ones):
        return False
    scale = spread[open_ones] * math.sqrt(count / (count - 1))
    lead = float((gains[open_ones] / scale).max())
    if lead <= 0.0:
        return False
    excess = excess[open_ones] / scale[:, np.newaxis]
    tail = _tail(float(np.quantile(excess.max(axis=0), confidence)), count)
    return student_t_tail(lead, count - 1) < tail


def _usable(means: FloatArray, replicates: FloatArray, selected: BoolArray) -> tuple[BoolArray, FloatArray]:
    """The configurations to compare, and their replicates without the columns in which one of them has NaN."""
    numbers = np.isfinite(replicates)
    present = selected & np.isfinite(means) & numbers.any(axis=1)
    return present, replicates[present][:, numbers[present].all(axis=0)]


def _tail(quantile: float, count: float) -> float:
    """The probability at which the small sample takes Student's quantile in place of the bootstrap's.

    Replicates spread less than the mean does, by √((n - 1)/n), and know nothing of the standard error's own error.
    So the probability is that of the normal distribution beyond quantile / √((n - 1)/n), and Student's has n - 1
    degrees of freedom. For one configuration this leads to Student's interval; for many, the quantile is further out,
    where Student's tail is the longer one.
    """
    return math.erfc(quantile * math.sqrt(count / (count - 1) / 2.0)) / 2.0


def _check(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence is between 0 and 1, not {confidence}")


def pareto_front(cost: FloatArray, quality: FloatArray) -> BoolArray:
    """Return a mask of the choices for which no other is at least as cheap and as good, and cheaper or better.

    >>> pareto_front(np.array([0.0, 1.0, 2.0, 2.0]), np.array([0.5, 0.7, 0.6, 0.7])).tolist()
    [True, True, False, False]
    """
    order = np.lexsort((-quality, cost))
    by_cost, by_quality = cost[order], quality[order]
    first = np.searchsorted(by_cost, by_cost)  # the best of those that cost the same
    highest = np.concatenate([[-np.inf], np.maximum.accumulate(by_quality)])
    is_front = np.empty(len(order), np.bool_)
    is_front[order] = (by_quality == by_quality[first]) & (by_quality > highest[first])
    return is_front
