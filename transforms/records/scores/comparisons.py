"""Rows of the tables of means and of comparisons, made from the aggregate of a run."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray
from rankbeam.transforms.kernels.statistics.corrections import benjamini_hochberg, holm
from rankbeam.transforms.kernels.statistics.estimates import Estimate
from rankbeam.transforms.kernels.statistics.selection import joint_intervals, may_be_best
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.evaluation import Evaluation
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.means import MetricSummary, QueryAggregate, or_null
from rankbeam.transforms.records.scores.panels import AnyMetric, Panel
from rankbeam.transforms.records.scores.resampled import Layout
from rankbeam.transforms.records.scores.rows import Comparison, ConfigurationMetric
from rankbeam.transforms.records.slices import ALL

Firsts = Mapping[tuple[str, str], str]
"""By config_id and metric, the first configuration that has equal values at every query of a slice."""


def metrics_table(aggregate: RunAggregate, evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.CONFIGURATION_METRICS`, without the common columns, by configuration, slice and metric."""
    names = sorted(_slices(aggregate))
    rows = {name: _means_of(name, aggregate, evaluation) for name in names}
    ordered = [
        rows[name][each.config_id, str(metric)]
        for each, name, metric in itertools.product(evaluation.configurations, names, evaluation.metrics)
    ]
    return _table(ordered, tables.CONFIGURATION_METRICS)


def comparisons_of(aggregate: RunAggregate, evaluation: Evaluation) -> list[Comparison]:
    """The comparisons by configuration, baseline, slice and metric."""
    totals = {name: _totals(aggregate, name) for name in _slices(aggregate)}
    rows: list[Comparison] = []
    for one, other, name in sorted({(one, other, name) for one, other, _, name in aggregate.pairs}):
        here = _differences_of(one, other, name, totals[name], aggregate, evaluation)
        rows += [here[metric] for metric in map(str, evaluation.metrics) if metric in here]
    return _corrected(rows, {name: _firsts(name, aggregate, evaluation) for name in totals})


def comparisons_table(aggregate: RunAggregate, evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.COMPARISONS`, without the common columns, as `comparisons_of` gives them."""
    return _table(comparisons_of(aggregate, evaluation), tables.COMPARISONS)


def _differences_of(
    one: int, other: int, name: str, totals: IntArray | None, aggregate: RunAggregate, evaluation: Evaluation
) -> dict[str, Comparison]:
    """The comparisons of a pair over one slice, by metric; p-values are not corrected yet."""
    layout, statistics = Layout.of(evaluation), evaluation.statistics
    ours, theirs = (evaluation.configurations[position].config_id for position in (one, other))
    rows = {}
    for number, panel in enumerate(evaluation.panels):
        state = aggregate.pairs[one, other, number, name]
        if name != ALL and state.moments.count < statistics.min_slice:
            continue
        drawn = _no_replicates(panel) if totals is None else layout.differences(totals, (one, other), number)
        for metric, summary in zip(panel.metrics, state.result(panel.ranges, drawn, statistics), strict=True):
            rows[str(metric)] = Comparison(ours, theirs, name, str(metric), **vars(summary))
    return rows


def _means_of(name: str, aggregate: RunAggregate, evaluation: Evaluation) -> dict[tuple[str, str], ConfigurationMetric]:
    """The rows of every configuration over one slice, by config_id and metric."""
    totals, firsts = _totals(aggregate, name), _firsts(name, aggregate, evaluation)
    rows: dict[tuple[str, str], ConfigurationMetric] = {}
    for number in range(len(evaluation.panels)):
        for of_metric in _contenders(name, number, totals, aggregate, evaluation, firsts):
            for row in _ranked(of_metric, totals is not None, evaluation):
                rows[row.config_id, row.metric] = row
    return rows


class Contender(NamedTuple):
    """One metric of one configuration, to be ranked among the others."""

    row: ConfigurationMetric
    estimate: Estimate
    replicates: FloatArray
    """float64[b], the bootstrap's means."""


def _contenders(
    name: str, number: int, totals: IntArray | None, aggregate: RunAggregate, evaluation: Evaluation, firsts: Firsts
) -> Iterator[list[Contender]]:
    """For each metric of a panel, every configuration over one slice, without the columns of `OfMany`."""
    panel, layout = evaluation.panels[number], Layout.of(evaluation)
    by_configuration = []
    for position, each in enumerate(evaluation.configurations):
        state = aggregate.queries[position, number, name]
        drawn = _no_replicates(panel) if totals is None else layout.means(totals, position, number)
        summaries = state.result(panel.ranges, drawn, evaluation.statistics.confidence)
        if name != ALL and state.moments.count < evaluation.statistics.min_slice:
            summaries = [replace(summary, ci_low=None, ci_high=None) for summary in summaries]
        rows = [
            _row(each.config_id, name, metric, panel, state, summary, firsts)
            for metric, summary in zip(panel.metrics, summaries, strict=True)
        ]
        by_configuration.append(list(map(Contender, rows, state.estimates(panel.ranges), drawn)))
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
    return ConfigurationMetric(
        config_id,
        name,
        str(metric),
        **vars(summary),
        queries=state.moments.count,
        empty=state.empty,
        failed=state.failed,
        missing=state.missing,
        undefined=state.undefined,
        not_asked=state.not_asked,
        equal_to=None if first == config_id else first,
        panel=panel.name,
    )


def _firsts(name: str, aggregate: RunAggregate, evaluation: Evaluation) -> dict[tuple[str, str], str]:
    """The `Firsts` of one slice."""
    firsts: dict[tuple[str, str], str] = {}
    for number, panel in enumerate(evaluation.panels):
        for column, metric in enumerate(map(str, panel.metrics)):
            seen: dict[object, str] = {}
            for position, each in enumerate(evaluation.configurations):
                state = aggregate.queries[position, number, name]
                values = state.values_of(column) if state.moments.count else position
                firsts[each.config_id, metric] = seen.setdefault(values, each.config_id)
    return firsts


def _ranked(contenders: Sequence[Contender], is_resampled: bool, evaluation: Evaluation) -> list[ConfigurationMetric]:
    """The rows of one metric over one slice, with the columns of `OfMany`."""
    by_dialect: defaultdict[object, dict[int, Contender]] = defaultdict(dict)
    for place, (each, configuration) in enumerate(zip(contenders, evaluation.configurations, strict=True)):
        in_race = configuration.dropped_at is None
        is_enough = each.row.slice == ALL or each.estimate.count >= evaluation.statistics.min_slice
        if is_resampled and in_race and is_enough:
            # Values by the rules of different tools are not comparable.
            by_dialect[configuration.dialect][place] = each
    rows = [_out_of_race(each.row, evaluation) for each in contenders]
    for group in by_dialect.values():
        for place, row in zip(group, _rank_distinct([*group.values()], evaluation.statistics.confidence), strict=True):
            rows[place] = row
    return rows


def _out_of_race(row: ConfigurationMetric, evaluation: Evaluation) -> ConfigurationMetric:
    """The row by what a race says of it, if it dropped any: the best is among those that are left."""
    dropped = {each.config_id for each in evaluation.configurations if each.dropped_at is not None}
    is_raced = evaluation.race is not None and row.metric == evaluation.race.metric and row.slice == ALL
    return replace(row, may_be_best=row.config_id not in dropped) if dropped and is_raced else row


def _rank_distinct(contenders: Sequence[Contender], confidence: float) -> list[ConfigurationMetric]:
    """The rows of one metric, with joint intervals and with the configurations that may be the best.

    Configurations with equal values count once. The columns stay null for a configuration without a value.
    """
    leaders: dict[str, Contender] = {}
    known = [each for each in contenders if each.row.mean is not None]
    for each in known:
        leaders.setdefault(each.row.equal_to or each.row.config_id, each)
    if len(known) < 2:
        return [each.row for each in contenders]
    ranked = dict(zip(leaders, _rank([*leaders.values()], confidence), strict=True))
    return [
        each.row
        if each.row.mean is None
        else replace(each.row, **ranked[each.row.equal_to or each.row.config_id]._asdict())
        for each in contenders
    ]


class OfMany(NamedTuple):
    """The columns of a row that hold for all configurations at once."""

    joint_low: float | None = None
    joint_high: float | None = None
    may_be_best: bool | None = None


def _rank(contenders: Sequence[Contender], confidence: float) -> list[OfMany]:
    estimates = [each.estimate for each in contenders]
    count = min(each.count for each in estimates)
    if count < 2:
        return [OfMany() for _ in contenders]
    means = np.array([each.mean for each in estimates], np.float64)
    replicates = np.stack([each.replicates for each in contenders])
    lows, highs = joint_intervals(estimates, replicates, confidence)
    best = may_be_best(means, replicates, count, confidence)
    return [
        OfMany(or_null(low), or_null(high), may_be)
        for low, high, may_be in zip(lows.tolist(), highs.tolist(), best.tolist(), strict=True)
    ]


def _corrected(rows: Sequence[Comparison], firsts: Mapping[str, Firsts]) -> list[Comparison]:
    """Add p-values corrected over all comparisons of a metric: those of all queries, and those of slices.

    A sweep often has configurations with equal values, such as two values of `top_k` above a metric's cutoff. They are
    one hypothesis: counting it several times would make the correction stricter than needed.

    Args:
        rows: without these p-values.
        firsts: by slice.
    """
    corrected = list(rows)
    families: defaultdict[tuple[str, bool], dict[tuple[str, ...], list[int]]] = defaultdict(dict)
    for place, row in enumerate(rows):
        first = firsts[row.slice]
        one, other = sorted(first[each, row.metric] for each in (row.config_id, row.baseline))
        if one == other:  # equal values: there is nothing to test
            corrected[place] = replace(row, p_value=None, t_p_value=None)
            continue
        family = families[row.metric, row.slice == ALL]
        family.setdefault((one, other, row.slice), []).append(place)
    for family in families.values():
        p_values = np.array([rows[places[0]].p_value for places in family.values()], np.float64)
        adjusted, rates = holm(p_values).tolist(), benjamini_hochberg(p_values).tolist()
        for places, p_adjusted, q_value in zip(family.values(), adjusted, rates, strict=True):
            for place in places:
                corrected[place] = replace(rows[place], p_adjusted=or_null(p_adjusted), q_value=or_null(q_value))
    return corrected


def _slices(aggregate: RunAggregate) -> list[str]:
    return list(dict.fromkeys(name for *_, name in aggregate.queries))


def _totals(aggregate: RunAggregate, name: str) -> IntArray | None:
    return aggregate.replicates[name].totals() if name in aggregate.replicates else None


def _no_replicates(panel: Panel) -> FloatArray:
    return np.empty((len(panel.metrics), 0))


def _table(rows: Sequence[ConfigurationMetric | Comparison], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([vars(row) for row in rows], schema=tables.own_columns(schema))
