"""Sample sizes: power of the paired t test, of McNemar's test, and over clusters."""

import math
from collections.abc import Sequence
from statistics import NormalDist

from rankbeam.transforms.kernels.statistics.intervals import student_t_quantile


def queries_needed(difference: float, deviation: float, power: float = 0.8, level: float = 0.05) -> int:
    """The smallest number of queries with which a two-sided paired t test detects a difference.

    The smallest n with n ≥ ((t(1 - level/2) + t(power)) · deviation / difference)², each t the quantile with n - 1
    degrees of freedom (Chow, Shao and Wang, "Sample size calculations in clinical research", 2008, section 3.2).

    Args:
        difference: true mean difference, above 0.
        deviation: standard deviation of the queries' differences.
        power: probability of finding the difference.
        level: significance level of the test; for m comparisons, the level of all over m.

    Returns:
        At least 2.

    Raises:
        ValueError: an argument is out of its range.

    >>> queries_needed(0.02, 0.135), queries_needed(0.02, 0.244)
    (360, 1171)
    """
    _check(difference, power, level)
    return _smallest((deviation, deviation), difference, power, level)


def queries_needed_for_shares(difference: float, discordant: float, power: float = 0.8, level: float = 0.05) -> int:
    """The smallest number of queries with which McNemar's test detects a difference of two paired shares.

    As `queries_needed`, with the deviation √discordant without a difference and √(discordant - difference²) with it
    (Connor, "Sample size for testing differences in proportions for the paired-sample design", Biometrics 1987).

    Args:
        difference: difference of the shares, above 0 and at most `discordant`.
        discordant: share of queries with different values.
        power: probability of finding the difference.
        level: significance level of the test.

    Raises:
        ValueError: an argument is out of its range.

    >>> queries_needed_for_shares(0.1, 0.3), queries_needed(0.1, math.sqrt(0.3))
    (236, 238)
    """
    _check(difference, power, level)
    if not difference <= discordant <= 1.0:
        raise ValueError(f"discordant must be from {difference}, the difference, to 1, not {discordant}")
    deviations = math.sqrt(discordant), math.sqrt(discordant - difference**2)
    return _smallest(deviations, difference, power, level)


def _smallest(deviations: tuple[float, float], difference: float, power: float, level: float) -> int:
    """The smallest n, by bisection near the normal distribution's: n minus what it must reach rises with n."""

    def required(quantiles: tuple[float, float]) -> float:
        total = sum(quantile * deviation for quantile, deviation in zip(quantiles, deviations, strict=True))
        return float((max(total, 0.0) / difference) ** 2)

    def is_enough(n: int) -> bool:
        return n >= required((student_t_quantile(1.0 - level / 2.0, n - 1), student_t_quantile(power, n - 1)))

    normal = NormalDist()
    high = max(2, math.ceil(required((normal.inv_cdf(1.0 - level / 2.0), normal.inv_cdf(power)))))
    low, step = high - 1, 1
    while not is_enough(high):
        low, high, step = high, high + step, 2 * step
    while low > 1 and is_enough(low):
        low, high, step = max(1, low - step), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def design_effect(sizes: Sequence[int], correlation: float) -> float:
    """The factor by which clusters raise the number of queries that are needed.

    1 + (m - 1) · correlation with m = Σsize² / Σsize, the size of the cluster of a random query (Kish, "Survey
    sampling", 1965, section 5.4; for unequal sizes, Kerry and Bland, "Unequal cluster sizes for trials", BMJ 2001).

    Args:
        sizes: numbers of queries per cluster.
        correlation: intraclass correlation of two queries of one cluster.

    >>> round(design_effect([10] * 30, 0.3), 12), design_effect([1, 1], 0.3)
    (3.7, 1.0)
    """
    return 1.0 + (sum(size * size for size in sizes) / sum(sizes) - 1.0) * correlation


def with_samples(variance: float, within: float, observed: int, planned: int) -> float:
    """The variance of differences if each item is judged a different number of times.

    variance - 2·within/observed + 2·within/planned: each of the two values has the noise of its mean.

    Args:
        variance: observed variance of the queries' differences.
        within: variance of one value when it is judged again.
        observed: number of judgements per item behind `variance`.
        planned: number of judgements per item to come.

    >>> round(with_samples(0.04, 0.01, 1, 4), 6)
    0.025
    """
    return variance + 2.0 * within * (1.0 / planned - 1.0 / observed)


def _check(difference: float, power: float, level: float) -> None:
    if not difference > 0.0 or not 0.0 < power < 1.0 or not 0.0 < level < 1.0:
        raise ValueError(f"no sample detects {difference} at a level of {level} with a power of {power}")
