"""The mean of some queries, or of clusters of them: the state that merges, and the statistics drawn from it.

The bootstrap sums columns: scores of all configurations, and differences of all pairs, as whole numbers.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, HashArray, IntArray
from rankbeam.transforms.kernels.hashing import fingerprints, hash_strings
from rankbeam.transforms.kernels.statistics.estimates import Estimate
from rankbeam.transforms.kernels.statistics.moments import ClusterMoments, ClusterStatistics, ClusterTotals, Moments
from rankbeam.transforms.records.dataset import cluster_hashes
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.metrics.panels import AnyMetric, Panel, Range, range_of
from rankbeam.transforms.records.scores.rows import MetricSummary
from rankbeam.transforms.records.scores.scored import ScoredPanel, ScoredPartition, Status

_BITS = 32  # resolution of a bounded metric: 2^-32 of its highest value, far finer than replicates differ

Part = tuple[IntArray, BoolArray]
"""One panel of one configuration: values as whole numbers, int64[n, m], and a mask of queries with values, bool[n]."""
Group = int | tuple[int, int]  # the position of a configuration, or the positions of a pair


@dataclass(frozen=True)
class SumLayout:
    """The meaning of the columns of the bootstrap's sums.

    Each of the k configurations has, panel by panel, one column per metric and one that counts its queries; then each
    pair has the same columns for its differences, over the queries that both have.
    """

    panels: tuple[Panel, ...]
    configurations: int
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, evaluation: Evaluation) -> "SumLayout":
        return cls(evaluation.panels, len(evaluation.configurations), evaluation.pairs)

    def part(self, panel: int, scored: ScoredPanel) -> Part:
        """A panel of one configuration as whole numbers; queries without values are 0."""
        counted = scored.scored
        values = np.where(counted[:, None], scored.values, 0.0)
        units: IntArray = np.rint(values * self._scales[panel]).astype(np.int64)
        return units, counted

    def columns(self, parts: Sequence[Sequence[Part]]) -> IntArray:
        """int64[n, (k + pairs) · Σ(m + 1)], summed over the panels, from the parts of each configuration."""
        columns = [np.column_stack(part) for config in parts for part in config]
        for one, other in self.pairs:
            for (units, counted), (others, also) in zip(parts[one], parts[other], strict=True):
                both = counted & also
                columns.append(np.column_stack([(units - others) * both[:, None], both]))
        return np.concatenate(columns, axis=1)

    def within(
        self, parts: Sequence[Sequence[Part]], columns: IntArray, chosen: BoolArray
    ) -> tuple[BoolArray, IntArray]:
        """The rows of a slice, bool[n] or by rank bool[k, n], and their columns."""
        if chosen.ndim == 1:
            return chosen, columns[chosen]
        masked = [
            [(units * members[:, None], known & members) for units, known in config]
            for config, members in zip(parts, chosen, strict=True)
        ]
        rows: BoolArray = np.logical_or.reduce(chosen)
        return rows, self.columns(masked)[rows]

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """For each column, the position of the column that counts its queries; for such a column, its own."""
        groups = self.configurations + len(self.pairs)
        widths = [len(panel.metrics) + 1 for panel in self.panels] * groups
        lasts = np.repeat(np.cumsum(widths) - 1, widths)
        return tuple(lasts.tolist())

    def _first_column(self, group: Group, panel: int) -> int:
        """The first column of a panel of a configuration or pair."""
        place = group if isinstance(group, int) else self.configurations + self._places[group]
        return place * self._starts[-1] + self._starts[panel]

    def by_cluster(self, moments: ClusterMoments, group: Group, panel: int) -> list[ClusterStatistics]:
        """The statistics by cluster of each metric."""
        columns = enumerate(self._scales[panel].tolist(), self._first_column(group, panel))
        return [moments.result(column, scale) for column, scale in columns]

    def replicates(self, totals: IntArray, group: Group, panel: int) -> FloatArray:
        """The replicates of means or mean differences, float64[m, b]; NaN if a replicate weighs nothing."""
        first, metrics = self._first_column(group, panel), len(self.panels[panel].metrics)
        *sums, weight = totals[first : first + metrics + 1].astype(np.float64)
        divisor = np.where(weight > 0, weight, np.nan)
        return np.reshape(sums, (metrics, len(weight))) / self._scales[panel][:, None] / divisor

    @cached_property
    def _places(self) -> dict[tuple[int, int], int]:
        """For each pair, its place among the pairs."""
        return {pair: place for place, pair in enumerate(self.pairs)}

    @cached_property
    def _starts(self) -> list[int]:
        """For each panel, its first column within a configuration's; last, the number of a configuration's columns."""
        widths = [len(panel.metrics) + 1 for panel in self.panels]
        return [sum(widths[:place]) for place in range(len(widths) + 1)]

    @cached_property
    def _scales(self) -> list[FloatArray]:
        """For each panel float64[m]: the powers of two by which values are scaled to whole numbers."""
        return [np.ldexp(1.0, np.array([_bits(metric) for metric in panel.metrics], np.int64)) for panel in self.panels]


def _bits(metric: AnyMetric) -> int:
    lowest, highest = range_of(metric)
    return metric.bits if highest is None else _BITS - math.ceil(math.log2(max(highest, -lowest)))


_PARTS = 64  # of the sums by cluster, which are merged separately


def drawn_hashes(queries: pa.RecordBatch, evaluation: Evaluation) -> HashArray:
    """uint64[n], the hashes by which the bootstrap and the randomisation test draw: of clusters, else of queries."""
    attribute = evaluation.statistics.cluster
    return hash_strings(queries["query_id"]) if attribute is None else cluster_hashes(queries, attribute)


def cluster_totals(
    partition: ScoredPartition, evaluation: Evaluation
) -> Iterator[tuple[tuple[str, int], ClusterTotals]]:
    """The sums by cluster in each slice of some scored queries, keyed by slice and part; empty without clusters."""
    if evaluation.statistics.cluster is None:
        return
    layout = SumLayout.of(evaluation)
    parts = [
        [layout.part(number, panel) for number, panel in enumerate(item.panels)] for item in partition.configurations
    ]
    columns = layout.columns(parts)
    hashes = drawn_hashes(partition.queries, evaluation)
    for name, chosen in partition.slices.items():
        rows, slice_columns = layout.within(parts, columns, chosen)
        for part, totals in ClusterTotals.of(hashes[rows], slice_columns).shares(_PARTS):
            yield (name, part), totals


def cluster_moments(totals: ClusterTotals, evaluation: Evaluation) -> ClusterMoments:
    return ClusterMoments.of(totals, SumLayout.of(evaluation).weights)


_MODULUS = 1 << 64
_SHARES = Range(0.0, 1.0)


@dataclass(frozen=True)
class QueryAggregate:
    """The scores of some queries under one configuration, for all metrics of a panel."""

    moments: Moments  # count, sums and squares over the scored queries, the empty ones included
    empty: int
    failed: int
    missing: int = 0
    ties: tuple[Moments, Moments] | None = None
    fingerprints: tuple[int, ...] = ()
    undefined: int = 0
    not_asked: int = 0
    unjudged: tuple[Moments, Moments] | None = None  # bounds by assumptions about unjudged documents; 0 for none

    @classmethod
    def of(cls, scored: ScoredPanel, chosen: BoolArray, hashes: HashArray | None = None) -> "QueryAggregate":
        """The state of the chosen queries, bool[n]; `hashes` of their ids, uint64[n], are for comparisons only."""
        counted = chosen & scored.scored
        values = scored.values[counted]
        compared = np.zeros(values.shape[1], np.uint64) if hashes is None else fingerprints(hashes[counted], values)
        counts = np.bincount(scored.status[chosen], minlength=len(Status)).tolist()
        return cls(
            Moments.of(values),
            counts[Status.EMPTY],
            counts[Status.FAILED],
            counts[Status.MISSING],
            None if scored.tie_bounds is None else _bounds(scored.tie_bounds[:, counted]),
            tuple(compared.tolist()),
            counts[Status.UNDEFINED],
            counts[Status.NOT_ASKED],
            None if scored.unjudged_bounds is None else _bounds(np.nan_to_num(scored.unjudged_bounds[:, counted])),
        )

    def merge(self, other: "QueryAggregate") -> "QueryAggregate":
        return QueryAggregate(
            self.moments.merge(other.moments),
            self.empty + other.empty,
            self.failed + other.failed,
            self.missing + other.missing,
            _merge_bounds(self.ties, other.ties),
            tuple((a + b) % _MODULUS for a, b in zip(self.fingerprints, other.fingerprints, strict=True)),
            self.undefined + other.undefined,
            self.not_asked + other.not_asked,
            _merge_bounds(self.unjudged, other.unjudged),
        )

    def values_of(self, metric: int) -> tuple[int, ...]:
        """Identifies the values of one metric: equal if, and only if, every query has an equal value."""
        return self.moments.count, self.moments.sums[metric], self.moments.squares[metric], self.fingerprints[metric]

    def estimates(self, ranges: Sequence[Range], clusters: Sequence[ClusterStatistics] | None = None) -> list[Estimate]:
        """The estimate of every metric's mean, from which its interval is drawn; by clusters if there are any."""
        moments = self.moments
        columns = zip(
            moments.means(), moments.standard_errors(), moments.highest, ranges, moments.successes(), strict=True
        )
        estimates = [
            Estimate(moments.count, mean, error, *ends, highest, successes if ends == _SHARES else None)
            for mean, error, highest, ends, successes in columns
        ]
        if clusters is None:
            return estimates
        return [
            replace(plain, count=cluster.count, standard_error=cluster.standard_error, successes=None)
            for plain, cluster in zip(estimates, clusters, strict=True)
        ]

    def result(
        self, ranges: Sequence[Range], confidence: float = 0.95, clusters: Sequence[ClusterStatistics] | None = None
    ) -> list[MetricSummary]:
        """Mean, interval and bounds of every metric."""
        everyone = self.moments.count + self.failed
        estimates, totals = self.estimates(ranges, clusters), self.moments.totals()
        tie_means, unjudged_means = _means(self.ties, len(estimates)), _means(self.unjudged, len(estimates))
        summaries = []
        counts = [None] * len(estimates) if clusters is None else [cluster.count for cluster in clusters]
        columns = zip(estimates, totals, tie_means, counts, unjudged_means, strict=True)
        for estimate, total, tied, count, unjudged in columns:
            mean, error = estimate.mean, estimate.standard_error
            low, high = estimate.interval((1.0 - confidence) / 2.0)
            lowest, highest = (
                mean if not self.failed else None if end is None else (total + self.failed * end) / everyone
                for end in (estimate.floor, estimate.ceiling)
            )
            numbers = (mean, low, high, error, lowest, highest, *tied, count, *unjudged)
            summaries.append(MetricSummary(*map(or_null, numbers)))
        return summaries


def _bounds(values: FloatArray) -> tuple[Moments, Moments]:
    lowest, highest = values
    return Moments.of(lowest), Moments.of(highest)


def _means(bounds: tuple[Moments, Moments] | None, metrics: int) -> list[tuple[float | None, float | None]]:
    return [(None, None)] * metrics if bounds is None else list(zip(bounds[0].means(), bounds[1].means(), strict=True))


def _merge_bounds(
    one: tuple[Moments, Moments] | None, other: tuple[Moments, Moments] | None
) -> tuple[Moments, Moments] | None:
    if one is None or other is None:
        return one or other
    return one[0].merge(other[0]), one[1].merge(other[1])


def or_null(number: float | None) -> float | None:
    return None if number is None or np.isnan(number) else number
