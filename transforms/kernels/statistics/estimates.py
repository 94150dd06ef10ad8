"""The interval of a mean whose values have a range: exact for shares, and wider where rare values may be unobserved.

Neither the bootstrap nor Student's t allows for values that the sample lacks: thirty successes of thirty have no
spread, and both would give [1, 1]. Values that n queries did not show may still have a share of 1 - tail^(1/n) of all
queries ("the rule of three": Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 1983),
and differ from the mean by as much as the range of the metric allows. So

- values that are all 0 or 1 have the exact interval of a share;
- an end of another interval moves out by the method of variance estimates recovery (Zou and Donner, "Construction of
  confidence limits about effect measures", Statistics in Medicine 2008), which adds the two errors as squares,

      mean - √((mean - low)² + (rarity · (1 - tail^(1/n)) · (mean - floor))²),

  and likewise above. `Estimate.rarity` is 0 where enough values differ, and the interval is then left as it is;
- no end leaves the range.

`tests/benchmarks/simulate.py` simulates how often the intervals cover the true mean.
"""

import math
from dataclasses import dataclass

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.statistics.bootstrap import bootstrap_interval
from rankbeam.transforms.kernels.statistics.intervals import share_interval

_FEW, _ENOUGH = 5.0, 10.0
_LARGE = 1000  # with so many successes, and failures, the exact interval of a share is the bootstrap's


@dataclass(frozen=True)
class Estimate:
    """The mean of n values, and the statistics that its interval needs.

    Attributes:
        count: n.
        mean: of the values.
        standard_error: of the mean.
        lowest, highest: the extreme values of the sample.
        floor, ceiling: the range of possible values; None where it is unbounded.
        successes: how many values are 1, where all of them are 0 or 1 and that is the range too; else None.
        events: how many values differ from the usual one, where the metric has such a value; else None.
    """

    count: int
    mean: float
    standard_error: float
    lowest: float
    highest: float
    floor: float | None = 0.0
    ceiling: float | None = 1.0
    successes: int | None = None
    events: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is an interval: fewer than two values have none."""
        return self.count > 1 and math.isfinite(self.mean) and math.isfinite(self.standard_error)

    @property
    def rarity(self) -> float:
        """From 0, where enough values differ from the lowest and from the highest one, to 1, where few do.

        Deviations d count by (Σd)² / Σd², Kish's effective sample size ("Survey sampling", 1965): k values that are
        equally far from all the others count k. The rule of thumb for proportions is that ten are enough.

        >>> [Estimate(50, 1.0 - k / 50, math.sqrt(k * (50 - k) / 49) / 50, 0.0, 1.0).rarity for k in (1, 5, 8, 10)]
        [1.0, 1.0, 0.4, 0.0]
        """
        seen = min(self._differing(self.mean - self.lowest), self._differing(self.highest - self.mean))
        if self.events is not None:
            seen = min(seen, self.events)
        return min(1.0, max(0.0, round((_ENOUGH - seen) / (_ENOUGH - _FEW), 12)))

    def _differing(self, distance: float) -> float:
        """Kish's effective sample size of the deviations from an extreme value, given its distance from the mean."""
        if distance <= 0.0:
            return 0.0
        return self.count / (1.0 + (self.count - 1) * (self.standard_error / distance) ** 2)

    def interval(self, replicates: FloatArray, confidence: float = 0.95) -> tuple[float, float]:
        """The interval of the mean.

        Args:
            replicates: float64[b], the bootstrap's means; without any, the interval is made from Student's.
            confidence: share of samples whose interval covers the true mean.

        Returns:
            Lower and upper end. NaN, NaN for fewer than two values, and for values that are all equal where the range
            has no end.

        >>> import numpy as np
        >>> tuple(round(end, 3) for end in Estimate(30, 0.5, 0.0, 0.5, 0.5).interval(np.empty(0)))
        (0.442, 0.558)
        """
        tail = (1.0 - confidence) / 2.0
        if (share := self.share_interval(tail)) is not None:
            return share
        return self.widened(
            *bootstrap_interval(self.mean, self.standard_error, replicates, self.count, confidence), tail
        )

    def share_interval(self, tail: float) -> tuple[float, float] | None:
        """The exact interval where all values are 0 or 1; None for others, and where there are too many to need it."""
        if self.successes is None or not self.is_known or min(self.successes, self.count - self.successes) >= _LARGE:
            return None
        return share_interval(self.successes, self.count, tail)

    def widened(self, low: float, high: float, tail: float) -> tuple[float, float]:
        """An interval that allows for values that the sample did not show, inside the range.

        Args:
            low: end that is drawn from the values of the sample alone.
            high: likewise.
            tail: probability beyond either end.
        """
        if not self.is_known or (self.standard_error == 0.0 and None in (self.floor, self.ceiling)):
            return math.nan, math.nan
        unseen = self.rarity * (1.0 - tail ** (1.0 / self.count))
        if self.floor is not None:
            low = self.mean - math.hypot(self.mean - low, unseen * (self.mean - self.floor))
            low = max(low, min(self.floor, self.mean))
        if self.ceiling is not None:
            high = self.mean + math.hypot(high - self.mean, unseen * (self.ceiling - self.mean))
            high = min(high, max(self.ceiling, self.mean))
        return low, high
