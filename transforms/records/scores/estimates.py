"""The estimates of a run, slice by slice: they are made from its aggregate, and small where that is large."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.statistics.estimates import Estimate
from rankbeam.transforms.kernels.statistics.moments import ClusterStatistics
from rankbeam.transforms.kernels.statistics.selection import joint_intervals, may_be_best
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.metrics.panels import AnyMetric, Panel
from rankbeam.transforms.records.metrics.values import has_unjudged_bounds
from rankbeam.transforms.records.scores.aggregates import NO_OTHER, RunAggregate, RunFacts
from rankbeam.transforms.records.scores.labelled import difference_with_labels, with_labels
from rankbeam.transforms.records.scores.means import Group, QueryAggregate, SumLayout, or_null
from rankbeam.transforms.records.scores.rows import Comparison, ConfigurationMetric, MetricSummary
from rankbeam.transforms.records.slices import ALL, ranked_by

Means = Mapping[tuple[str, str], ConfigurationMetric]  # the rows of one slice, by config_id and metric
Firsts = Mapping[tuple[str, str], str]
"""By config_id and metric, the first configuration that has equal values for every query of a slice."""

POSITIONS = ("position", "baseline_position")
UNCORRECTED = pa.schema([*(pa.field(name, pa.int32()) for name in POSITIONS), *tables.own_columns(tables.COMPARISONS)])
"""Comparisons with the positions of both configurations; neither corrected p-values nor stages are known yet."""


@dataclass(frozen=True)
class SliceState:
    """One slice of an aggregate, by groups: positions of configurations, or pairs of them."""

    name: str
    aggregate: RunAggregate
    evaluation: Evaluation
    layout: SumLayout

    @classmethod
    def by_name(cls, aggregate: RunAggregate, evaluation: Evaluation) -> "dict[str, SliceState]":
        layout = SumLayout.of(evaluation)  # it lists all pairs, so once
        return {name: cls(name, aggregate, evaluation, layout) for *_, name in aggregate.queries}

    def replicates(self, group: Group, panel: int) -> FloatArray:
        """The bootstrap's means or mean differences, float64[m, b]; without a bootstrap, b is 0."""
        if self._totals is None:
            return np.empty((len(self.evaluation.panels[panel].metrics), 0))
        return self.layout.replicates(self._totals, group, panel)

    def clusters(self, group: Group, panel: int) -> list[ClusterStatistics] | None:
        """The statistics by cluster of each metric; None without clusters."""
        moments = self.aggregate.clusters.get(self.name)
        return None if moments is None else self.layout.by_cluster(moments, group, panel)

    @property
    def is_resampled(self) -> bool:
        return self._totals is not None

    def has_few(self, queries: int, clusters: Sequence[ClusterStatistics] | None) -> bool:
        """Return whether the slice has too few units of evidence for intervals: clusters if there are any."""
        units = queries if clusters is None else max((cluster.count for cluster in clusters), default=0.0)
        return self.name != ALL and units < self.evaluation.statistics.min_slice

    @cached_property
    def _totals(self) -> IntArray | None:
        """The weighted sums of all replicates; None without a bootstrap."""
        replicates = self.aggregate.replicates.get(self.name)
        return None if replicates is None else replicates.totals()


@dataclass(frozen=True)
class RunEstimates(RunFacts):
    """Means, intervals and comparisons over some slices of a run."""

    means: Mapping[str, Means] = field(default_factory=dict)
    # By slice, its rows of `UNCORRECTED` by pair and metric. With all pairs they are by far the most of the estimates,
    # of which several steps have a copy, so they are columns and not objects.
    differences: Mapping[str, pa.Table] = field(default_factory=dict)
    resultless: frozenset[int] = frozenset()

    @classmethod
    def of(cls, aggregate: RunAggregate, evaluation: Evaluation) -> "RunEstimates":
        slices = SliceState.by_name(aggregate, evaluation)
        return cls(
            {name: _means_of(slice_) for name, slice_ in slices.items()},
            _differences(slices, aggregate),
            frozenset(
                position
                for (position, panel, name), state in aggregate.queries.items()
                if (panel, name) == (0, ALL) and state.empty + state.missing
            ),
            **aggregate.facts_with(RunFacts()),
        )

    @classmethod
    def of_differences(cls, aggregate: RunAggregate, evaluation: Evaluation) -> "RunEstimates":
        """The differences of further pairs, without the means that the first pairs came with."""
        return cls(differences=_differences(SliceState.by_name(aggregate, evaluation), aggregate))

    def merge(self, other: "RunEstimates") -> "RunEstimates":
        """The estimates of both, which have neither means of one slice nor pairs of one slice in common."""
        ours, theirs = self.differences, other.differences
        return RunEstimates(
            {**self.means, **other.means},
            {**ours, **theirs, **{name: pa.concat_tables([ours[name], theirs[name]]) for name in ours.keys() & theirs}},
            self.resultless | other.resultless,
            **self.facts_with(other),
        )


def _differences(slices: Mapping[str, SliceState], aggregate: RunAggregate) -> dict[str, pa.Table]:
    """The rows of `UNCORRECTED` of each slice."""
    pairs = grouped((name, (one, other)) for one, other, _, name in aggregate.pairs)
    return {
        name: pa.Table.from_pylist(
            [
                dict(zip(POSITIONS, pair, strict=True)) | vars(row)
                for pair in sorted({*of_slice})
                for row in _differences_of_pair(pair, slices[name])
            ],
            UNCORRECTED,
        )
        for name, of_slice in pairs.items()
    }


def _differences_of_pair(pair: tuple[int, int], slice_: SliceState) -> tuple[Comparison, ...]:
    """The comparisons of a pair over one slice, in the order of the metrics; p-values are not corrected yet."""
    name, aggregate, evaluation = slice_.name, slice_.aggregate, slice_.evaluation
    statistics = evaluation.statistics
    ours, theirs = (evaluation.configurations[position].config_id for position in pair)
    rows = {}
    for number, panel in enumerate(evaluation.panels):
        state, clusters = aggregate.pairs[*pair, number, name], slice_.clusters(pair, number)
        if slice_.has_few(state.moments.count, clusters):
            continue
        summaries = state.result(panel.ranges, slice_.replicates(pair, number), statistics, clusters)
        if panel.has_labels:
            labelled, confidence = aggregate.labelled[*pair, number, name], statistics.confidence
            summaries = [difference_with_labels(summaries[0], labelled, panel.ranges[0], confidence)]
        for metric, summary in zip(panel.metrics, summaries, strict=True):
            is_lower = evaluation.lower_is_better(metric)
            if is_lower:
                summary = replace(summary, wins=summary.losses, losses=summary.wins)
            rows[str(metric)] = Comparison(
                config_id=ours,
                baseline=theirs,
                slice=name,
                metric=str(metric),
                lower_is_better=is_lower,
                **vars(summary),
            )
    return tuple(rows[metric] for metric in map(str, evaluation.metrics) if metric in rows)


def _means_of(slice_: SliceState) -> dict[tuple[str, str], ConfigurationMetric]:
    """The rows of every configuration over one slice, by config_id and metric."""
    firsts = _firsts(slice_)
    rows: dict[tuple[str, str], ConfigurationMetric] = {}
    for number, panel in enumerate(slice_.evaluation.panels):
        for contenders in _contenders(slice_, number, firsts):
            # Joint intervals and the best are drawn from replicates, which labels do not have.
            for row in _ranked_rows(contenders, slice_.is_resampled and not panel.has_labels, slice_.evaluation):
                rows[row.config_id, row.metric] = row
    return rows


class Contender(NamedTuple):
    """One metric of one configuration, to be ranked among the others."""

    row: ConfigurationMetric
    estimate: Estimate
    replicates: FloatArray  # float64[b], the bootstrap's means


def _contenders(slice_: SliceState, number: int, firsts: Firsts) -> Iterator[list[Contender]]:
    """For each metric of a panel, every configuration over one slice, without the columns of `OfMany`."""
    name, aggregate, evaluation = slice_.name, slice_.aggregate, slice_.evaluation
    panel = evaluation.panels[number]
    by_configuration = []
    for position, configuration in enumerate(evaluation.configurations):
        state = aggregate.queries[position, number, name]
        replicates, clusters = slice_.replicates(position, number), slice_.clusters(position, number)
        summaries = state.result(panel.ranges, evaluation.statistics.confidence, clusters)
        if panel.has_labels:
            labelled = aggregate.labelled[position, NO_OTHER, number, name]
            summaries = [with_labels(summaries[0], labelled, panel.ranges[0], evaluation.statistics.confidence)]
        if slice_.has_few(state.moments.count, clusters):
            summaries = [replace(summary, ci_low=None, ci_high=None) for summary in summaries]
        rows = [
            _row(configuration.config_id, name, metric, panel, state, summary, firsts)
            for metric, summary in zip(panel.metrics, summaries, strict=True)
        ]
        by_configuration.append(list(map(Contender, rows, state.estimates(panel.ranges, clusters), replicates)))
    yield from map(list, zip(*by_configuration, strict=True))


def _row(
    config_id: str,
    name: str,
    metric: AnyMetric,
    panel: Panel,
    state: QueryAggregate,
    summary: MetricSummary,
    firsts: Firsts,
) -> ConfigurationMetric:
    first = firsts[config_id, str(metric)]
    if not has_unjudged_bounds(metric):
        summary = replace(summary, unjudged_lowest=None, unjudged_highest=None)
    return ConfigurationMetric(
        **vars(summary),
        config_id=config_id,
        slice=name,
        metric=str(metric),
        queries=state.moments.count,
        empty=state.empty,
        failed=state.failed,
        missing=state.missing,
        undefined=state.undefined,
        not_asked=state.not_asked,
        equal_to=None if first == config_id else first,
        panel=panel.name,
        lower_is_better=metric.lower_is_better,
    )


def _firsts(slice_: SliceState) -> dict[tuple[str, str], str]:
    name, aggregate, evaluation = slice_.name, slice_.aggregate, slice_.evaluation
    firsts: dict[tuple[str, str], str] = {}
    for number, panel in enumerate(evaluation.panels):
        for column, metric in enumerate(map(str, panel.metrics)):
            first_by_values: dict[tuple[object, ...], str] = {}
            for position, configuration in enumerate(evaluation.configurations):
                state = aggregate.queries[position, number, name]
                values: tuple[object, ...] = state.values_of(column) if state.moments.count else (position,)
                if panel.has_labels:  # the judge's values count, too, if people decided nothing
                    labelled = aggregate.labelled[position, NO_OTHER, number, name]
                    values = (*values, labelled.labelled, labelled.others, labelled.certain)
                firsts[configuration.config_id, metric] = first_by_values.setdefault(values, configuration.config_id)
    return firsts


def _ranked_rows(
    contenders: Sequence[Contender], is_resampled: bool, evaluation: Evaluation
) -> list[ConfigurationMetric]:
    """The rows of one metric over one slice, with the columns of `OfMany`."""
    by_dialect: defaultdict[object, dict[int, Contender]] = defaultdict(dict)
    for place, (contender, configuration) in enumerate(zip(contenders, evaluation.configurations, strict=True)):
        in_race = configuration.dropped_at is None
        is_enough = contender.row.slice == ALL or contender.estimate.count >= evaluation.statistics.min_slice
        if is_resampled and in_race and is_enough and not ranked_by(contender.row.slice):
            # Values by the rules of different tools are not comparable, nor are means over different queries.
            by_dialect[configuration.dialect][place] = contender
    rows = [contender.row for contender in contenders]
    for group in by_dialect.values():
        for place, row in zip(group, _rank_distinct([*group.values()], evaluation.statistics.confidence), strict=True):
            rows[place] = row
    dropped = {
        configuration.config_id for configuration in evaluation.configurations if configuration.dropped_at is not None
    }
    return [_after_race(row, dropped, evaluation) for row in rows] if dropped else rows


def _after_race(row: ConfigurationMetric, dropped: Set[str], evaluation: Evaluation) -> ConfigurationMetric:
    """The row after a race, which compares all queries by one metric: by others, a dropped one may be the best."""
    is_raced = evaluation.race is not None and row.metric == evaluation.race.metric and row.slice == ALL
    if not is_raced:
        return replace(row, may_be_best=None)
    if row.config_id in dropped:
        return replace(row, may_be_best=False)
    return row if row.mean is None or row.may_be_best is not None else replace(row, may_be_best=True)


def _rank_distinct(contenders: Sequence[Contender], confidence: float) -> list[ConfigurationMetric]:
    """The rows of one metric, with joint intervals and with the configurations that may be the best.

    Configurations with equal values count once. The columns stay null for a configuration without a value.
    """
    leaders: dict[str, Contender] = {}
    with_mean = [contender for contender in contenders if contender.row.mean is not None]
    for contender in with_mean:
        leaders.setdefault(contender.row.equal_to or contender.row.config_id, contender)
    if len(with_mean) < 2:
        return [contender.row for contender in contenders]
    ranked = dict(zip(leaders, _rank([*leaders.values()], confidence), strict=True))
    return [
        contender.row
        if contender.row.mean is None
        else replace(contender.row, **ranked[contender.row.equal_to or contender.row.config_id]._asdict())
        for contender in contenders
    ]


class OfMany(NamedTuple):
    """The columns of a row that hold for all configurations at once."""

    joint_low: float | None = None
    joint_high: float | None = None
    may_be_best: bool | None = None


def _rank(contenders: Sequence[Contender], confidence: float) -> list[OfMany]:
    estimates = [contender.estimate for contender in contenders]
    count = min(estimate.count for estimate in estimates)
    if count < 2:
        return [OfMany() for _ in contenders]
    means = np.array([estimate.mean for estimate in estimates], np.float64)
    replicates = np.stack([contender.replicates for contender in contenders])
    lows, highs = joint_intervals(estimates, replicates, confidence)
    sign = contenders[0].row.sign
    best = may_be_best(sign * means, sign * replicates, count, confidence)
    return [
        OfMany(or_null(low), or_null(high), may_be)
        for low, high, may_be in zip(lows.tolist(), highs.tolist(), best.tolist(), strict=True)
    ]
