"""What the combined scores say of configurations beside each other: rows of the means, and of the comparisons."""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray
from rankbeam.transforms.kernels.statistics.corrections import benjamini_hochberg, holm
from rankbeam.transforms.kernels.statistics.estimates import Estimate
from rankbeam.transforms.kernels.statistics.selection import joint_intervals, may_be_best
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.evaluation import Evaluation
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.means import or_null
from rankbeam.transforms.records.scores.resampled import Layout
from rankbeam.transforms.records.slices import ALL

Row = dict[str, Any]

_OF_MANY = ("joint_low", "joint_high", "may_be_best")


def metrics_table(aggregate: RunAggregate, evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.CONFIGURATION_METRICS`, without the common columns, by configuration, slice and metric."""
    rows: dict[tuple[int, str], list[Row]] = {}
    for name in _slices(aggregate):
        rows |= {(position, name): found for position, found in enumerate(_means_of(name, aggregate, evaluation))}
    ordered = [row for key in sorted(rows) for row in rows[key]]
    return _table(ordered, tables.CONFIGURATION_METRICS)


def comparisons_table(aggregate: RunAggregate, evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.COMPARISONS`, without the common columns, by configuration, baseline, slice and metric."""
    found: list[Row] = []
    layout, statistics = Layout.of(evaluation), evaluation.statistics
    sums = {name: _totals(aggregate, name) for name in _slices(aggregate)}
    ids = [each.config_id for each in evaluation.configurations]
    for (one, other, name), state in sorted(aggregate.pairs.items()):
        if name != ALL and state.moments.count < statistics.min_slice:
            continue
        totals = sums[name]
        drawn = _nothing(evaluation) if totals is None else layout.differences(totals, (one, other))
        key = {"config_id": ids[one], "baseline": ids[other], "slice": name}
        differences = state.result(_highest(evaluation), drawn, statistics)
        for metric, difference in zip(evaluation.metrics, differences, strict=True):
            found.append({**key, "metric": str(metric), **asdict(difference)})
    _correct(found, {name: _firsts(name, aggregate, evaluation) for name in sums})
    return _table(found, tables.COMPARISONS)


def _means_of(name: str, aggregate: RunAggregate, evaluation: Evaluation) -> Iterator[list[Row]]:
    """The rows of every configuration over one slice."""
    statistics, configurations = evaluation.statistics, evaluation.configurations
    layout, totals = Layout.of(evaluation), _totals(aggregate, name)
    highest = _highest(evaluation)
    states = [aggregate.queries[position, name] for position in range(len(configurations))]
    drawn = [
        _nothing(evaluation) if totals is None else layout.means(totals, position) for position in range(len(states))
    ]
    rows: list[list[Row]] = []
    for each, state, replicates in zip(configurations, states, drawn, strict=True):
        counts = {kind: getattr(state, kind) for kind in ("empty", "failed", "missing")}
        counts["queries"] = state.moments.count
        summaries = state.result(highest, replicates, statistics.confidence)
        key = {"config_id": each.config_id, "slice": name}
        rows.append(
            [
                {**key, "metric": str(metric), **asdict(summary), **counts}
                for metric, summary in zip(evaluation.metrics, summaries, strict=True)
            ]
        )
        if name != ALL and state.moments.count < statistics.min_slice:
            for row in rows[-1]:
                row["ci_low"] = row["ci_high"] = None
    firsts = _firsts(name, aggregate, evaluation)
    for row in itertools.chain.from_iterable(rows):
        first = firsts[row["config_id"], row["metric"]]
        row["equal_to"] = None if first == row["config_id"] else first
    alike = defaultdict(list)  # values by the rules of different tools are no better or worse than each other
    for i, state in enumerate(states):
        if totals is not None and (name == ALL or state.moments.count >= statistics.min_slice):
            alike[configurations[i].dialect].append(i)
    estimates = [state.estimates(highest) for state in states]
    for column, group in itertools.product(range(len(evaluation.metrics)), alike.values()):
        contenders = [Contender(rows[i][column], estimates[i][column], drawn[i][column]) for i in group]
        _rank_distinct(contenders, statistics.confidence)
    yield from rows


def _firsts(name: str, aggregate: RunAggregate, evaluation: Evaluation) -> dict[tuple[str, str], str]:
    """By config_id and metric, the first configuration that has equal values at every query of a slice."""
    firsts: dict[tuple[str, str], str] = {}
    for column, metric in enumerate(map(str, evaluation.metrics)):
        seen: dict[object, str] = {}
        for position, each in enumerate(evaluation.configurations):
            state = aggregate.queries[position, name]
            values = state.values_of(column) if state.moments.count else position
            firsts[each.config_id, metric] = seen.setdefault(values, each.config_id)
    return firsts


class Contender(NamedTuple):
    """One metric of one configuration, beside others."""

    row: Row
    estimate: Estimate
    replicates: FloatArray
    """float64[b], the bootstrap's means."""


def _rank_distinct(contenders: Sequence[Contender], confidence: float) -> None:
    """Say of one metric's rows which may be the best, and what holds for all of them at once.

    Those with equal values count once: one is picked from as many as are different. One without a value may be any
    good, and nothing is said of it.
    """
    equals: defaultdict[str, list[Contender]] = defaultdict(list)
    for each in contenders:
        if each.row["mean"] is not None:
            equals[each.row["equal_to"] or each.row["config_id"]].append(each)
    if sum(map(len, equals.values())) < 2:
        return
    _rank([same[0] for same in equals.values()], confidence)
    for leader, *others in equals.values():
        for each in others:
            each.row.update({name: leader.row.get(name) for name in _OF_MANY})


def _rank(contenders: Sequence[Contender], confidence: float) -> None:
    estimates = [each.estimate for each in contenders]
    count = min(each.count for each in estimates)
    if count < 2:
        return
    means = np.array([each.mean for each in estimates], np.float64)
    replicates = np.stack([each.replicates for each in contenders])
    lows, highs = joint_intervals(estimates, replicates, confidence)
    best = may_be_best(means, replicates, count, confidence)
    for each, low, high, may_be in zip(contenders, lows.tolist(), highs.tolist(), best.tolist(), strict=True):
        each.row.update({"joint_low": or_null(low), "joint_high": or_null(high), "may_be_best": may_be})


def _highest(evaluation: Evaluation) -> tuple[float | None, ...]:
    return tuple(metric.definition.highest for metric in evaluation.metrics)


def _correct(rows: Sequence[Row], firsts: Mapping[str, Mapping[tuple[str, str], str]]) -> None:
    """Add p-values corrected over all comparisons of a metric: those of all queries, and those of slices.

    A sweep often has configurations with equal values, such as two values of `top_k` above a metric's cutoff. They are
    one hypothesis: counted several times, it would make every other one harder to show.

    Args:
        rows: of `tables.COMPARISONS`, without these p-values.
        firsts: by slice, what `_firsts` says of it.
    """
    families: defaultdict[tuple[str, bool], dict[tuple[str, ...], list[Row]]] = defaultdict(dict)
    for row in rows:
        row |= {"p_adjusted": None, "q_value": None}
        first = firsts[row["slice"]]
        one, other = sorted(first[row[each], row["metric"]] for each in ("config_id", "baseline"))
        if one == other:
            row |= {"p_value": None, "t_p_value": None}  # no test: one thing is not compared with itself
            continue
        family = families[row["metric"], row["slice"] == ALL]
        family.setdefault((one, other, row["slice"]), []).append(row)
    for family in families.values():
        p_values = np.array([hypothesis[0]["p_value"] for hypothesis in family.values()], np.float64)
        corrected = zip(family.values(), holm(p_values).tolist(), benjamini_hochberg(p_values).tolist(), strict=True)
        for hypothesis, adjusted, false_discoveries in corrected:
            for row in hypothesis:
                row |= {"p_adjusted": or_null(adjusted), "q_value": or_null(false_discoveries)}


def _slices(aggregate: RunAggregate) -> list[str]:
    return list(dict.fromkeys(name for _, name in aggregate.queries))


def _totals(aggregate: RunAggregate, name: str) -> IntArray | None:
    return aggregate.replicates[name].totals() if name in aggregate.replicates else None


def _nothing(evaluation: Evaluation) -> FloatArray:
    return np.empty((len(evaluation.metrics), 0))


def _table(found: list[Row], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(found, schema=tables.own_columns(schema))
