"""The agreement of a judge: with known verdicts, with its repeated verdicts, and with its verdicts of another week."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from statistics import NormalDist

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray


def wilson_interval(successes: int, count: int, confidence: float = 0.95) -> tuple[float, float]:
    """The score interval of a share: Wilson, "Probable inference", JASA 1927.

    Args:
        successes: k of the items.
        count: number of items n.
        confidence: share of samples whose interval covers the true share, about.

    Returns:
        Lower and upper end; NaN, NaN without items.

    >>> [round(end, 4) for end in wilson_interval(22, 24)]
    [0.7415, 0.9768]
    """
    if count == 0:
        return math.nan, math.nan
    z = NormalDist().inv_cdf(0.5 + confidence / 2.0)
    share, spread = successes / count, z * z / count
    middle = (share + spread / 2.0) / (1.0 + spread)
    reach = z / (1.0 + spread) * math.sqrt(share * (1.0 - share) / count + spread / (4.0 * count))
    # At the ends the formula gives 0 and 1 exactly, and rounding does not.
    return 0.0 if successes == 0 else middle - reach, 1.0 if successes == count else middle + reach


def mcnemar_p_value(only_before: int, only_after: int) -> float:
    """Two-sided exact p-value of the hypothesis that as many items became wrong as became right.

    McNemar, Psychometrika 1947: a changed item became right or wrong with probability 1/2 each, so that the tail is
    that of the binomial distribution.

    Args:
        only_before: items that were right before and are wrong now.
        only_after: items that were wrong before and are right now.

    >>> mcnemar_p_value(8, 1), mcnemar_p_value(0, 0)
    (0.0390625, 1.0)
    """
    changed = only_before + only_after
    tail = sum(math.comb(changed, fewer) for fewer in range(min(only_before, only_after) + 1))
    return min(1.0, 2 * tail / (1 << changed))


def within_variance(samples: Sequence[FloatArray]) -> float:
    """The mean over items of the variance of their repeated values: the square of the judge's own noise.

    Args:
        samples: the values of each item, float64[k]; items with fewer than two are left out.

    Returns:
        NaN where no item was repeated.

    >>> within_variance([np.array([0.0, 1.0]), np.array([0.5, 0.5, 0.5]), np.array([1.0])])
    0.25
    """
    repeated = [values for values in samples if len(values) > 1]
    variances = [float(np.var(values, ddof=1)) for values in repeated]
    return math.fsum(variances) / len(variances) if variances else math.nan


def self_agreement(verdicts: Sequence[Sequence[Hashable]]) -> float:
    """The mean over items of the share of pairs of their repeated verdicts that are equal.

    Args:
        verdicts: the verdicts on each item; items with fewer than two are left out.

    Returns:
        NaN where no item was repeated.

    >>> self_agreement([("yes", "yes", "no"), ("no", "no", "no"), ("yes",)])
    0.6666666666666666
    """
    shares = [
        sum(math.comb(times, 2) for times in Counter(given).values()) / math.comb(len(given), 2)
        for given in verdicts
        if len(given) > 1
    ]
    return math.fsum(shares) / len(shares) if shares else math.nan
