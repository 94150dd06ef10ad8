"""Mergeable states of many queries: values with zero, merge and result, which a CombineFn only forwards to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from transforms.kernels.arrays import FloatArray
from transforms.kernels.intervals import student_interval, student_p_value
from transforms.kernels.moments import Moments
from transforms.records.scored import ScoredConfiguration, ScoredPartition, Status

Key = tuple[int, str]
State = TypeVar("State", "QueryAggregate", "PairedAggregate")


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

    Further statistics of the same queries (a keyed bootstrap, say) become further fields that merge alike.

    Attributes:
        moments: count, sums and squares over the queries that were scored, the empty ones included.
        empty: how many of these had no result.
        failed: how many further queries could not be scored.
        missing: how many further queries have no result and are left out.
        ties: of the lowest, then of the highest values that ties allow; None where nothing is known of them.
    """

    moments: Moments
    empty: int
    failed: int
    missing: int = 0
    ties: tuple[Moments, Moments] | None = None

    @classmethod
    def zero(cls, metrics: int) -> "QueryAggregate":
        """The state of no query at all."""
        return cls(Moments.zero(metrics), 0, 0)

    @classmethod
    def of(cls, scored: ScoredConfiguration, chosen: np.ndarray) -> "QueryAggregate":
        """The state of the chosen queries.

        Args:
            scored: n queries.
            chosen: bool[n].
        """
        counted = chosen & scored.scored
        return cls(
            Moments.of(scored.values[counted]),
            int((scored.status[chosen] == Status.EMPTY).sum()),
            int((scored.status[chosen] == Status.FAILED).sum()),
            int((scored.status[chosen] == Status.MISSING).sum()),
            None if scored.tie_bounds is None else _bounds(scored.tie_bounds[:, counted]),
        )

    def merge(self, other: "QueryAggregate") -> "QueryAggregate":
        """The state of both sets of queries."""
        return QueryAggregate(
            self.moments.merge(other.moments),
            self.empty + other.empty,
            self.failed + other.failed,
            self.missing + other.missing,
            _merged(self.ties, other.ties),
        )

    def result(self, highest: tuple[float | None, ...], confidence: float = 0.95) -> list[MetricSummary]:
        """Mean, interval and bounds of every metric.

        Args:
            highest: per metric, the highest value a query can have; None where there is no bound.
            confidence: of the interval.

        Returns:
            One summary a metric. The bounds are what the mean could be if every failed query had been scored,
            at 0 or at the highest value; without failures they are the mean.
        """
        count = self.moments.count
        everyone = count + self.failed
        means, errors, totals = self.moments.means(), self.moments.standard_errors(), self.moments.totals()
        tie_means = (
            zip(*(each.means() for each in self.ties), strict=True) if self.ties else [(None, None)] * len(means)
        )
        summaries = []
        for mean, error, total, bound, tied in zip(means, errors, totals, highest, tie_means, strict=True):
            low, high = student_interval(mean, error, count, confidence)
            at_most = mean if not self.failed else None if bound is None else (total + self.failed * bound) / everyone
            at_least = mean if not self.failed else total / everyone
            summaries.append(MetricSummary(*map(_or_null, (mean, low, high, error, at_least, at_most, *tied))))
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


@dataclass(frozen=True)
class Difference:
    """One metric of one configuration against the baseline over one slice: a row of `comparisons`."""

    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class PairedAggregate:
    """The differences of two configurations over the queries that both have, for all metrics at once.

    Attributes:
        moments: of the differences.
        wins: per metric, queries in which the difference is above 0.
        losses: per metric, queries in which it is below 0.
    """

    moments: Moments
    wins: tuple[int, ...]
    losses: tuple[int, ...]

    @classmethod
    def zero(cls, metrics: int) -> "PairedAggregate":
        """The state of no query at all."""
        return cls(Moments.zero(metrics), (0,) * metrics, (0,) * metrics)

    @classmethod
    def of(cls, differences: FloatArray) -> "PairedAggregate":
        """The state of n queries.

        Args:
            differences: float64[n, m], configuration minus baseline.
        """
        wins, losses = (differences > 0).sum(axis=0), (differences < 0).sum(axis=0)
        return cls(Moments.of(differences), tuple(wins.tolist()), tuple(losses.tolist()))

    def merge(self, other: "PairedAggregate") -> "PairedAggregate":
        """The state of both sets of queries."""
        return PairedAggregate(
            self.moments.merge(other.moments),
            tuple(a + b for a, b in zip(self.wins, other.wins, strict=True)),
            tuple(a + b for a, b in zip(self.losses, other.losses, strict=True)),
        )

    def result(self, confidence: float = 0.95) -> list[Difference]:
        """Difference, interval and p-value of the paired t test, for every metric."""
        count = self.moments.count
        rows = zip(self.moments.means(), self.moments.standard_errors(), self.wins, self.losses, strict=True)
        differences = []
        for mean, error, wins, losses in rows:
            low, high = student_interval(mean, error, count, confidence)
            p_value = student_p_value(mean, error, count)
            differences.append(
                Difference(
                    difference=_or_null(mean),
                    ci_low=_or_null(low),
                    ci_high=_or_null(high),
                    p_value=_or_null(p_value),
                    wins=wins,
                    ties=count - wins - losses,
                    losses=losses,
                )
            )
        return differences


@dataclass(frozen=True)
class RunAggregate:
    """Everything that is combined over all queries of a run.

    Attributes:
        queries: by position of the configuration and name of the slice.
        pairs: the same, of the differences from the baseline.
        unjudged: how many rankings were of queries without judgements.
        failures: how many calls failed.
        with_results: positions of the configurations for which something was retrieved.
        with_judged: positions of those for which something that was retrieved is judged.
    """

    queries: Mapping[Key, QueryAggregate] = field(default_factory=dict)
    pairs: Mapping[Key, PairedAggregate] = field(default_factory=dict)
    unjudged: int = 0
    failures: int = 0
    with_results: frozenset[int] = frozenset()
    with_judged: frozenset[int] = frozenset()

    @classmethod
    def of(cls, partition: ScoredPartition, baseline: int) -> "RunAggregate":
        """The state of some scored queries.

        Args:
            partition: the queries.
            baseline: position of the configuration that the others are compared with.
        """
        base = partition.configurations[baseline]
        queries, pairs = {}, {}
        for scored in partition.configurations:
            both = scored.scored & base.scored
            for name, chosen in partition.slices.items():
                key = scored.configuration, name
                queries[key] = QueryAggregate.of(scored, chosen)
                if scored is not base:
                    here = both & chosen
                    pairs[key] = PairedAggregate.of(scored.values[here] - base.values[here])
        with_results = frozenset(each.configuration for each in partition.configurations if each.has_results)
        with_judged = frozenset(each.configuration for each in partition.configurations if each.has_judged)
        return cls(queries, pairs, partition.unjudged, partition.failures, with_results, with_judged)

    def merge(self, other: "RunAggregate") -> "RunAggregate":
        """The state of both sets of queries; associative and commutative, with `RunAggregate()` neutral."""
        return RunAggregate(
            _merge_all(self.queries, other.queries),
            _merge_all(self.pairs, other.pairs),
            self.unjudged + other.unjudged,
            self.failures + other.failures,
            self.with_results | other.with_results,
            self.with_judged | other.with_judged,
        )


def _merge_all(one: Mapping[Key, State], other: Mapping[Key, State]) -> dict[Key, State]:
    merged = dict(one)
    for key, state in other.items():
        merged[key] = merged[key].merge(state) if key in merged else state
    return merged


def _or_null(number: float | None) -> float | None:
    return None if number is None or np.isnan(number) else number
