"""Prediction-powered inference: a mean, or a difference, by a few human labels and many judged values.

Angelopoulos et al., "PPI++: efficient prediction-powered inference" (2023). n queries have a human value Y and a judged
value F; N others have a judged value F' only. With a power λ from 0 (labels alone) to 1 (the judge counts in full):

    θ = λ·mean(F') + mean(Y - λF)        s.e.² = λ²·Var(F')/N + Var(Y - λF)/n

The mean is unbiased however wrong the judge is; only its interval is wider. For a difference, Y, F and F' are
differences of two configurations at the same query. Here variances have n - 1 in the denominator and intervals are
Student's, widened for values that the labels lack (`PpiEstimate.interval`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.statistics.intervals import share_interval, student_t_quantile

LEAST_LABELS = 20  # with fewer labelled queries no interval is offered: it would hold less often than it says
FEW_LABELS = 30  # with fewer labelled queries an interval comes with a warning


@dataclass(frozen=True)
class Spread:
    """Count, mean and variance (divided by the count) of values."""

    count: float
    mean: float
    variance: float


@dataclass(frozen=True)
class LabelledSample:
    """Moments of n labelled queries and N others; variances and covariance are divided by the count."""

    labels: Spread  # n human values Y
    judged: Spread  # the judge's values F of the same queries
    covariance: float  # Cov(Y, F)
    others: Spread  # the judge's values F' of the N other queries

    @classmethod
    def of(cls, labels: FloatArray, judged: FloatArray, others: FloatArray) -> "LabelledSample":
        """The sample of some values.

        Args:
            labels: float64[n], Y.
            judged: float64[n], F.
            others: float64[N], F'.
        """
        covariance = float(np.mean((labels - labels.mean()) * (judged - judged.mean()))) if len(labels) else math.nan
        return cls(spread_of(labels), spread_of(judged), covariance, spread_of(others))

    def with_known(self, known: Spread) -> "LabelledSample":
        """The sample together with queries that need no labels, because their value is known.

        The share of them that counts as labelled is that of the other queries, as if they had been drawn like those.

        >>> sample = LabelledSample.of(np.array([1.0, 0.5]), np.array([1.0, 0.0]), np.ones(2))
        >>> sample.with_known(Spread(4, 0.0, 0.0)).labels
        Spread(count=4.0, mean=0.375, variance=0.171875)
        """
        count = known.count * self.labels.count / (self.labels.count + self.others.count)
        weight = self.labels.count / (self.labels.count + count)
        apart = (self.labels.mean - known.mean) * (self.judged.mean - known.mean)
        covariance = weight * self.covariance + (1.0 - weight) * (known.variance + weight * apart)
        labels, judged = _pooled_spread(self.labels, known, count), _pooled_spread(self.judged, known, count)
        return LabelledSample(labels, judged, covariance, _pooled_spread(self.others, known, known.count - count))

    @property
    def pooled_variance(self) -> float:
        """The variance of the judge's values of all queries, divided by n + N - 1."""
        n, inner_mean, inner = self.judged.count, self.judged.mean, self.judged.variance
        others, outer_mean, outer = self.others.count, self.others.mean, self.others.variance
        if not others:
            return n * inner / max(1, n - 1)
        between = n * others / (n + others) * (inner_mean - outer_mean) ** 2
        return (n * inner + others * outer + between) / (n + others - 1)

    @property
    def power(self) -> float:
        """The λ of the smallest variance, from 0 to 1; 0 if the judge says nothing.

        >>> LabelledSample.of(np.array([1.0, 0.0]), np.array([1.0, 1.0]), np.ones(3)).power
        0.0
        """
        n, others = self.labels.count, self.others.count
        if not others or not self.pooled_variance > 0.0:
            return 0.0
        return min(1.0, max(0.0, self.covariance / ((1.0 + n / others) * self.pooled_variance)))

    def residual_variance(self, power: float) -> float:
        """Var(Y - λF), divided by n; never below 0, to which rounding could lead."""
        total = self.labels.variance - 2.0 * power * self.covariance + power**2 * self.judged.variance
        return max(0.0, total)


@dataclass(frozen=True)
class PpiEstimate:
    """The mean of a sample at one power, and the statistics that its interval needs."""

    sample: LabelledSample  # the labelled and the other queries
    power: float  # λ
    lowest: float = 0.0  # the lowest value that a query can have
    highest: float = 1.0  # the highest value that a query can have
    ddof: int = 1  # subtracted from counts in variances; 0 for the convention of ppi_py
    satterthwaite: float | None = None  # degrees of freedom over strata; None for the number of labels minus 1

    @property
    def degrees(self) -> float:
        """Degrees of freedom of Student's interval."""
        return self.sample.labels.count - 1.0 if self.satterthwaite is None else self.satterthwaite

    @property
    def mean(self) -> float:
        """θ."""
        ours = self.sample.labels.mean - self.power * self.sample.judged.mean
        return ours + (self.power * self.sample.others.mean if self.power else 0.0)

    @property
    def standard_error(self) -> float:
        """The standard error of θ; NaN for fewer than two labels."""
        count = self.sample.labels.count - self.ddof
        if count < 1:
            return math.nan
        return math.sqrt(self.sample.residual_variance(self.power) / count + self._others_variance)

    @property
    def effective_labels(self) -> float:
        """Number of labels that would give the same standard error without a judge: n·Var(Y)/n over s.e.².

        >>> y, f = np.array([1.0, 0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
        >>> round(estimate(LabelledSample.of(y, f, np.tile(f, 3))).effective_labels, 9)
        17.939876568
        """
        count, error = self.sample.labels.count, self.standard_error
        alone = self.sample.labels.variance / max(1, count - self.ddof)
        return count * alone / error**2 if error > 0.0 else float(count)

    def interval(self, tail: float = 0.025) -> tuple[float, float]:
        """The interval of θ, which allows for values that the labels lack.

        A pseudo residual is added at each end of the range of Y - λF, as `estimates.Estimate` does, with a weight
        from 0 to 1: the variance of the values as a share of the highest variance that values of their mean can have.
        It is 1 if values are at the ends of the range, such as yes and no, and small if they are shares of
        many claims. Labels that are all equal have the interval of Clopper and Pearson of n successes in n.

        Args:
            tail: probability beyond either end.

        Returns:
            Lower and upper end inside the range; NaN, NaN for fewer than two labels.
        """
        labels, width = self.sample.labels, self.highest - self.lowest
        if labels.count < 2:
            return math.nan, math.nan
        if labels.variance == 0.0:
            share, _ = share_interval(round(labels.count), round(labels.count), tail)
            labelled = labels.mean * share
            return labelled + self.lowest * (1.0 - share), labelled + self.highest * (1.0 - share)
        middle, error = self.widened
        half_width = -student_t_quantile(tail, self.degrees) * error
        low, high = min(middle - half_width, self.mean), max(middle + half_width, self.mean)
        return max(low, min(self.lowest, self.mean)), min(high, max(self.lowest + width, self.mean))

    @property
    def widened(self) -> tuple[float, float]:
        """Centre and standard error with the pseudo residuals, from which Student's interval is drawn."""
        labels = self.sample.labels
        ends = (self.highest - self.power * self.lowest, self.lowest - self.power * self.highest)
        mean, variance = labels.mean - self.power * self.sample.judged.mean, self.sample.residual_variance(self.power)
        weight, n = self.pseudo_weight, labels.count
        total = n + 2.0 * weight
        centre = (n * mean + weight * sum(ends)) / total
        spread = n * (variance + (mean - centre) ** 2) + weight * sum((end - centre) ** 2 for end in ends)
        error = math.sqrt(spread / (total * (total - 1.0)) + self._others_variance)
        return centre + (self.power * self.sample.others.mean if self.power else 0.0), error

    @property
    def pseudo_weight(self) -> float:
        """The weight of a pseudo residual, by the labels and by all judged values, whichever is higher."""
        sample = self.sample
        n, others = sample.judged.count, sample.others.count
        pooled = (n * sample.judged.mean + (others * sample.others.mean if others else 0.0)) / (n + others)
        return max(
            _share_of_highest(sample.labels.mean, sample.labels.variance, self.lowest, self.highest),
            _share_of_highest(pooled, sample.pooled_variance, self.lowest, self.highest),
        )

    @property
    def _others_variance(self) -> float:
        """λ²·Var(F')/N."""
        count = self.sample.others.count - self.ddof
        return self.power**2 * self.sample.others.variance / count if self.power and count > 0 else 0.0


def estimate(sample: LabelledSample, lowest: float = 0.0, highest: float = 1.0) -> PpiEstimate:
    """The estimate at the best power.

    Args:
        sample: at least two labelled queries.
        lowest: the lowest value, or difference, that a query can have.
        highest: the highest value that a query can have.

    >>> labels, judged = np.array([1.0, 0.0, 1.0, 1.0]), np.array([1.0, 0.0, 1.0, 0.0])
    >>> result = estimate(LabelledSample.of(labels, judged, np.array([1.0, 1.0, 0.0, 1.0, 0.0, 1.0])))
    >>> round(result.power, 6), round(result.mean, 6)
    (0.28125, 0.796875)
    """
    return PpiEstimate(sample, sample.power, lowest, highest)


def stratified_estimate(samples: Sequence[LabelledSample], lowest: float = 0.0, highest: float = 1.0) -> PpiEstimate:
    """The estimate over strata whose queries were labelled with different probabilities, with one power.

    θ = ΣW·θ_s, s.e.² = ΣW²·s.e._s², where W is the share of all queries in a stratum; Satterthwaite, "An approximate
    distribution of estimates of variance components", Biometrics 1946. Labels count alone in a stratum with fewer than
    two other queries, whose spread is not known.

    Args:
        samples: one per stratum, with at least two labels each.
        lowest: the lowest value, or difference, that a query can have.
        highest: the highest value that a query can have.

    >>> half = LabelledSample.of(np.array([0.0, 1.0]), np.zeros(2), np.zeros(2))
    >>> result = stratified_estimate([half, half])
    >>> tuple(round(item, 6) for item in (result.mean, result.standard_error, result.degrees))
    (0.5, 0.353553, 2.0)
    """
    sizes = [sample.labels.count + sample.others.count for sample in samples]
    shares = [size / sum(sizes) for size in sizes]
    parts = [sample if sample.others.count > 1 else _by_labels(sample) for sample in samples]
    spreads = zip(*((part.labels, part.judged, part.others) for part in parts), strict=True)
    labels, judged, others = (_over_strata(part_spreads, shares) for part_spreads in spreads)
    covariances = [Spread(part.labels.count, 0.0, part.covariance) for part in parts]
    whole = LabelledSample(labels, judged, _over_strata(covariances, shares).variance, others)
    power = whole.power
    errors = [(share * PpiEstimate(part, power).standard_error) ** 2 for part, share in zip(parts, shares, strict=True)]
    below = sum(error**2 / (part.labels.count - 1) for part, error in zip(parts, errors, strict=True))
    fewest = min(part.labels.count for part in parts) - 1
    degrees = sum(errors) ** 2 / below if below > 0.0 else float(fewest)
    return PpiEstimate(whole, power, lowest, highest, satterthwaite=degrees)


def _over_strata(spreads: Sequence[Spread], shares: Sequence[float]) -> Spread:
    """The spread whose mean and squared standard error are those of the weighted mean over strata."""
    count = sum(spread.count for spread in spreads)
    known = [(spread, share) for spread, share in zip(spreads, shares, strict=True) if spread.count]
    mean = math.fsum(share * spread.mean for spread, share in known)
    squared = math.fsum(share**2 * spread.variance / max(1, spread.count - 1) for spread, share in known)
    return Spread(count, mean, squared * max(1, count - 1))


def _by_labels(sample: LabelledSample) -> LabelledSample:
    """A stratum in which the judge adds nothing to the labels."""
    return LabelledSample(sample.labels, Spread(sample.judged.count, 0.0, 0.0), 0.0, Spread(0, math.nan, math.nan))


def spread_of(values: FloatArray) -> Spread:
    """Count, mean and variance of values; NaN without any."""
    return Spread(len(values), float(values.mean()), float(values.var())) if len(values) else Spread(0, math.nan, 0.0)


def _pooled_spread(spread: Spread, known: Spread, count: float) -> Spread:
    """The spread with `count` more values, which are distributed as known ones."""
    if not spread.count or not count:
        return spread if not count else Spread(count, known.mean, known.variance)
    total = spread.count + count
    weight = spread.count / total
    between = weight * (1.0 - weight) * (spread.mean - known.mean) ** 2
    mean = weight * spread.mean + (1.0 - weight) * known.mean
    return Spread(total, mean, weight * spread.variance + (1.0 - weight) * known.variance + between)


def _share_of_highest(mean: float, variance: float, lowest: float, highest: float) -> float:
    """A variance as a share of the highest one of values with that mean; 1 if both are 0."""
    highest_variance = (mean - lowest) * (highest - mean)
    return min(1.0, variance / highest_variance) if highest_variance > 0.0 else 1.0
