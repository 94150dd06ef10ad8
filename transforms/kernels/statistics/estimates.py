"""Intervals of means whose values have a range, and of their differences: wider for values that the sample lacks.

Neither the bootstrap nor Student's t allows for values that no query has shown: fifty values between 0.8 and 1 exclude
neither 5% of zeros nor a mean of 0.85, and thirty successes of thirty have no spread at all.

- A mean has Student's interval of its n values *and one more at each end of the range*, with n - 1 degrees of freedom.
  For shares this is the idea of Agresti and Coull ("Approximate is better than exact for interval estimation of
  binomial proportions", The American Statistician 1998), made general. The further the values are from an end, and the
  fewer there are, the more it matters: with a thousand values it moves an end by less than a thousandth of the range.
  Without an upper bound, the highest value of the sample counts twice instead.
- Values that are all 0 or 1 have the exact interval of a share, which holds at every confidence: at 99%, and far out in
  the tails of joint intervals, two more values are too few.
- A difference has the bootstrap's interval, whose ends move out if few queries differ (`DifferenceEstimate`).

No end leaves the range. `tests/benchmarks/simulate.py` simulates how often the intervals hold the true mean.
"""

import math
from dataclasses import dataclass

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.statistics.bootstrap import bootstrap_interval
from rankbeam.transforms.kernels.statistics.intervals import share_interval, student_t_quantile

_FEW, _ENOUGH = 5.0, 10.0
_LARGE = 1000  # with this many successes, and failures, the exact interval of a share takes long and is the same


@dataclass(frozen=True)
class Estimate:
    """The mean of n values, and the statistics that its interval needs."""

    count: float  # n; the effective number of clusters if values come in clusters
    mean: float
    standard_error: float  # standard error of the mean
    floor: float = 0.0  # the lowest possible value
    ceiling: float | None = 1.0  # the highest possible value; None if there is no bound
    highest: float = 1.0  # the highest value of the sample, which replaces an absent ceiling
    # Number of values that are 1, if all of them are 0 or 1 and that is the range too; else None.
    successes: int | None = None

    def interval(self, tail: float = 0.025) -> tuple[float, float]:
        """The interval of the mean.

        Args:
            tail: probability beyond either end.

        Returns:
            Lower and upper end. NaN, NaN for fewer than two values, and for values that are all equal if the range
            has no end.

        >>> tuple(round(end, 3) for end in Estimate(30, 0.5, 0.0).interval())
        (0.454, 0.546)
        """
        if not _is_known(self.count, self.mean, self.standard_error):
            return math.nan, math.nan
        if self.successes is not None and min(self.successes, self.count - self.successes) < _LARGE:
            return share_interval(self.successes, round(self.count), tail)
        if self.standard_error == 0.0 and self.ceiling is None:
            return math.nan, math.nan
        ends = (self.floor, self.highest if self.ceiling is None else self.ceiling)
        total = self.count + 2
        centre = (self.count * self.mean + sum(ends)) / total
        spread = self.count * ((self.count - 1) * self.standard_error**2 + (self.mean - centre) ** 2)
        spread += sum((end - centre) ** 2 for end in ends)
        half_width = -student_t_quantile(tail, self.count - 1) * math.sqrt(spread / (total * (total - 1)))
        low, high = min(centre - half_width, self.mean), max(centre + half_width, self.mean)
        return _within(low, high, self.mean, self.floor, self.ceiling)


@dataclass(frozen=True)
class DifferenceEstimate:
    """The mean of n paired differences, and the statistics that its interval needs.

    Often most queries show no difference: one more value at each end of so wide a range would hide what a test finds.
    But values that n queries did not show may still have a share of 1 - tail^(1/n) of all queries ("the rule of three":
    Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 1983). So an end moves out by the
    method of variance estimates recovery (Zou and Donner, "Construction of confidence limits about effect measures",
    Statistics in Medicine 2008), which adds the two errors as squares,

        mean - √((mean - low)² + (rarity · (1 - tail^(1/n)) · (mean + width))²),

    and likewise above. `rarity` is 0 if enough values differ, and the interval is then left as it is.
    """

    count: float  # n; the effective number of clusters if values come in clusters
    mean: float  # mean of the differences
    standard_error: float  # standard error of the mean
    lowest: float  # the smallest difference of the sample
    highest: float  # the largest difference of the sample
    width: float | None  # width of the metric's range, so differences are from -width to width; None if it is unbounded
    events: int  # number of differences that are not 0

    @property
    def rarity(self) -> float:
        """From 0, if enough values differ from 0, from the lowest and from the highest value, to 1, if few do.

        Deviations d count by (Σd)² / Σd², Kish's effective sample size ("Survey sampling", 1965): k values that are
        equally far from all the others count k. The rule of thumb for proportions is that ten are enough.

        >>> few = [(k, k / 50, math.sqrt(k * (50 - k) / 49) / 50, 0.0, 1.0, 1.0) for k in (1, 5, 8, 10)]
        >>> [DifferenceEstimate(50, *row, events=k).rarity for k, *row in few]
        [1.0, 1.0, 0.4, 0.0]
        """
        seen = min(
            self._effective_size(self.mean - self.lowest), self._effective_size(self.highest - self.mean), self.events
        )
        return min(1.0, max(0.0, round((_ENOUGH - seen) / (_ENOUGH - _FEW), 12)))

    def _effective_size(self, distance: float) -> float:
        """Kish's effective sample size of the deviations from an extreme value, given its distance from the mean."""
        if distance <= 0.0:
            return 0.0
        return self.count / (1.0 + (self.count - 1) * (self.standard_error / distance) ** 2)

    def interval(self, replicates: FloatArray, confidence: float = 0.95) -> tuple[float, float]:
        """The interval of the mean difference.

        Args:
            replicates: float64[b], the bootstrap's means; without any, the interval is made from Student's.
            confidence: share of samples whose interval covers the true mean.

        Returns:
            Lower and upper end. NaN, NaN for fewer than two values, and for values that are all equal if the range
            has no end.
        """
        is_constant = self.standard_error == 0.0 and self.width is None
        if is_constant or not _is_known(self.count, self.mean, self.standard_error):
            return math.nan, math.nan
        low, high = bootstrap_interval(self.mean, self.standard_error, replicates, self.count, confidence)
        if self.width is None:
            return low, high
        unseen = self.rarity * (1.0 - ((1.0 - confidence) / 2.0) ** (1.0 / self.count))
        low = self.mean - math.hypot(self.mean - low, unseen * (self.mean + self.width))
        high = self.mean + math.hypot(high - self.mean, unseen * (self.width - self.mean))
        return _within(low, high, self.mean, -self.width, self.width)


def _is_known(count: float, mean: float, standard_error: float) -> bool:
    return count >= 2 and math.isfinite(mean) and math.isfinite(standard_error)


def _within(low: float, high: float, mean: float, floor: float, ceiling: float | None) -> tuple[float, float]:
    """The ends, moved inside the range, which the mean leaves by rounding at most."""
    return max(low, min(floor, mean)), high if ceiling is None else min(high, max(ceiling, mean))
