"""The mean of some queries under one configuration: the state that merges, and what is drawn from it."""

from dataclasses import dataclass

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, HashArray
from rankbeam.transforms.kernels.hashing import fingerprints
from rankbeam.transforms.kernels.statistics.estimates import Estimate
from rankbeam.transforms.kernels.statistics.moments import Moments
from rankbeam.transforms.records.scores.scored import ScoredConfiguration, Status

_MODULUS = 1 << 64


@dataclass(frozen=True)
class MetricSummary:
    """One metric of one configuration over one slice: a row of `configuration_metrics`."""

    mean: float | None
    ci_low: float | None
    ci_high: float | None
    std_error: float | None
    lowest: float | None
    highest: float | None
    tie_lowest: float | None
    tie_highest: float | None


@dataclass(frozen=True)
class QueryAggregate:
    """The scores of some queries under one configuration, for all metrics at once.

    Attributes:
        moments: count, sums and squares over the queries that were scored, the empty ones included.
        empty: how many of these had no result.
        failed: how many further queries could not be scored.
        missing: how many further queries have no result and are left out.
        ties: of the lowest, then of the highest values that ties allow; None where nothing is known of them.
        fingerprints: per metric, of the scored queries and their values; 0 where nothing is compared.
    """

    moments: Moments
    empty: int
    failed: int
    missing: int = 0
    ties: tuple[Moments, Moments] | None = None
    fingerprints: tuple[int, ...] = ()

    @classmethod
    def zero(cls, metrics: int) -> "QueryAggregate":
        """The state of no query at all."""
        return cls(Moments.zero(metrics), 0, 0, fingerprints=(0,) * metrics)

    @classmethod
    def of(cls, scored: ScoredConfiguration, chosen: BoolArray, hashes: HashArray | None = None) -> "QueryAggregate":
        """The state of the chosen queries.

        Args:
            scored: n queries.
            chosen: bool[n].
            hashes: uint64[n], of the queries' ids; None where configurations are not compared.
        """
        counted = chosen & scored.scored
        values = scored.values[counted]
        found = np.zeros(values.shape[1], np.uint64) if hashes is None else fingerprints(hashes[counted], values)
        return cls(
            Moments.of(values),
            int((scored.status[chosen] == Status.EMPTY).sum()),
            int((scored.status[chosen] == Status.FAILED).sum()),
            int((scored.status[chosen] == Status.MISSING).sum()),
            None if scored.tie_bounds is None else _bounds(scored.tie_bounds[:, counted]),
            tuple(found.tolist()),
        )

    def merge(self, other: "QueryAggregate") -> "QueryAggregate":
        """The state of both sets of queries."""
        return QueryAggregate(
            self.moments.merge(other.moments),
            self.empty + other.empty,
            self.failed + other.failed,
            self.missing + other.missing,
            _merged(self.ties, other.ties),
            tuple((a + b) % _MODULUS for a, b in zip(self.fingerprints, other.fingerprints, strict=True)),
        )

    def values_of(self, metric: int) -> tuple[int, ...]:
        """Identifies the values of one metric: equal where, and only where, every query has an equal value."""
        return self.moments.count, self.moments.sums[metric], self.moments.squares[metric], self.fingerprints[metric]

    def estimates(self, highest: tuple[float | None, ...]) -> list[Estimate]:
        """What the interval of every metric's mean is drawn from.

        Args:
            highest: per metric, the highest value a query can have; None where there is no bound. The lowest is 0.
        """
        moments = self.moments
        columns = zip(
            moments.means(),
            moments.standard_errors(),
            moments.lowest,
            moments.highest,
            highest,
            moments.successes(),
            strict=True,
        )
        return [
            Estimate(moments.count, mean, error, low, high, 0.0, bound, successes if bound == 1.0 else None)
            for mean, error, low, high, bound, successes in columns
        ]

    def result(
        self, highest: tuple[float | None, ...], replicates: FloatArray, confidence: float = 0.95
    ) -> list[MetricSummary]:
        """Mean, interval and bounds of every metric.

        Args:
            highest: per metric, the highest value a query can have; None where there is no bound.
            replicates: float64[m, b], the bootstrap's means of every metric; without any, intervals are Student's.
            confidence: of the interval.

        Returns:
            One summary a metric. The bounds are what the mean could be if every failed query had been scored,
            at 0 or at the highest value; without failures they are the mean.
        """
        count = self.moments.count
        everyone = count + self.failed
        estimates, totals = self.estimates(highest), self.moments.totals()
        tie_means = (
            zip(*(each.means() for each in self.ties), strict=True) if self.ties else [(None, None)] * len(estimates)
        )
        summaries = []
        for estimate, total, tied, drawn in zip(estimates, totals, tie_means, replicates, strict=True):
            mean, error, bound = estimate.mean, estimate.standard_error, estimate.ceiling
            low, high = estimate.interval(drawn, confidence)
            at_most = mean if not self.failed else None if bound is None else (total + self.failed * bound) / everyone
            at_least = mean if not self.failed else total / everyone
            summaries.append(MetricSummary(*map(or_null, (mean, low, high, error, at_least, at_most, *tied))))
        return summaries


def _bounds(values: FloatArray) -> tuple[Moments, Moments] | None:
    lowest, highest = values
    return Moments.of(lowest), Moments.of(highest)


def _merged(
    one: tuple[Moments, Moments] | None, other: tuple[Moments, Moments] | None
) -> tuple[Moments, Moments] | None:
    if one is None or other is None:
        return one or other
    return one[0].merge(other[0]), one[1].merge(other[1])


def or_null(number: float | None) -> float | None:
    """The number, or None for NaN."""
    return None if number is None or np.isnan(number) else number
