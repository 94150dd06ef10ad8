"""Percentiles of durations from counts in bins, which any number of workers can add up.

The ends of bins grow by 2%, as in DDSketch (Masson, Rim and Lee, 2019): a percentile is within 1% of the exact one.
"""

import math
from collections.abc import Mapping

_SHORTEST_S, _GROWTH = 1e-6, 1.02


def bin_of(seconds: float) -> int:
    """The bin that a duration falls into.

    >>> bin_of(0.0), bin_of(1.0), bin_of(1.03) - bin_of(1.0)
    (0, 698, 2)
    """
    return max(0, math.ceil(math.log(max(seconds, _SHORTEST_S) / _SHORTEST_S, _GROWTH)))


def percentile(counts: Mapping[int, int], percent: int) -> float | None:
    """A percentile of the durations, in seconds, as the upper end of its bin; None without durations.

    Args:
        counts: number of durations by bin.
        percent: percentage of durations that do not exceed the result, from 1 to 100.

    >>> most, all_but_six = ({bin_of(0.2): number, bin_of(3.0): 100 - number} for number in (95, 94))
    >>> f"{percentile(most, 95):.1f} {percentile(all_but_six, 95):.1f}"
    '0.2 3.0'
    """
    rank, seen = -(-sum(counts.values()) * percent // 100), 0
    for place in sorted(counts):
        seen += counts[place]
        if seen >= rank:
            return _SHORTEST_S * _GROWTH**place * 2 / (1 + _GROWTH)
    return None
