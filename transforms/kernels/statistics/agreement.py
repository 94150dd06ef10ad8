"""The agreement of a judge: with known verdicts, with its own repeated verdicts, and with its verdicts in another week.

Values that are averaged over items are fractions, so that a sum over items is the same in any order.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from statistics import NormalDist


def wilson_interval(successes: float, count: float, confidence: float = 0.95) -> tuple[float, float]:
    """The score interval of a share: Wilson, "Probable inference", JASA 1927.

    Args:
        successes: k of the items, or their share of an effective number.
        count: number of items n.
        confidence: approximate share of samples whose interval covers the true share.

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
    half_width = z / (1.0 + spread) * math.sqrt(share * (1.0 - share) / count + spread / (4.0 * count))
    # At the ends the formula gives 0 and 1 exactly, and rounding does not.
    return 0.0 if successes == 0 else middle - half_width, 1.0 if successes == count else middle + half_width


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


def value_variance(values: Sequence[Fraction]) -> Fraction:
    """The variance of the repeated values of one item: the square of the judge's own noise.

    Args:
        values: at least two.

    >>> value_variance([Fraction(0), Fraction(1)])
    Fraction(1, 2)
    """
    count, total = len(values), sum(values, Fraction())
    return (sum((value * value for value in values), Fraction()) - total * total / count) / (count - 1)


def pair_agreement(verdicts: Sequence[Hashable]) -> Fraction:
    """The share of pairs of repeated verdicts on one item that are equal.

    Args:
        verdicts: at least two.

    >>> pair_agreement(("yes", "yes", "no"))
    Fraction(1, 3)
    """
    equal = sum(math.comb(times, 2) for times in Counter(verdicts).values())
    return Fraction(equal, math.comb(len(verdicts), 2))
