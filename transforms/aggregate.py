"""Combine the scores of all queries per configuration and slice, and compare configurations query by query."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import apache_beam as beam
import pyarrow as pa

from transforms.records import tables
from transforms.records.aggregates import PairedAggregate, QueryAggregate
from transforms.records.evaluation import Evaluation
from transforms.records.scored import ScoredPartition

Key = tuple[int, str]
State = TypeVar("State", QueryAggregate, PairedAggregate)


@dataclass
class AggregateScores(beam.PTransform):
    """One table of `tables.CONFIGURATION_METRICS` (without the common columns) for all configurations and slices.

    Attributes:
        evaluation: configurations, metrics and slices.
    """

    evaluation: Evaluation

    def expand(self, scored: beam.PCollection[ScoredPartition]) -> beam.PCollection[pa.Table]:
        """Add the steps."""
        return (
            scored
            | "Aggregate" >> beam.FlatMap(aggregate).with_output_types(tuple[Key, QueryAggregate])
            | "Merge" >> beam.CombinePerKey(MergeFn(QueryAggregate.zero, len(self.evaluation.metrics)))
            | "ToList" >> beam.combiners.ToList()
            | "ToTable" >> beam.Map(metrics_table, self.evaluation).with_output_types(pa.Table)
        )


@dataclass
class CompareConfigurations(beam.PTransform):
    """One table of `tables.COMPARISONS` (without the common columns): every configuration against the baseline.

    Attributes:
        evaluation: configurations, metrics, slices and the baseline.
    """

    evaluation: Evaluation

    def expand(self, scored: beam.PCollection[ScoredPartition]) -> beam.PCollection[pa.Table]:
        """Add the steps."""
        return (
            scored
            | "Pair" >> beam.FlatMap(compare, self.evaluation.baseline).with_output_types(tuple[Key, PairedAggregate])
            | "Merge" >> beam.CombinePerKey(MergeFn(PairedAggregate.zero, len(self.evaluation.metrics)))
            | "ToList" >> beam.combiners.ToList()
            | "ToTable" >> beam.Map(comparisons_table, self.evaluation).with_output_types(pa.Table)
        )


class MergeFn(beam.CombineFn):
    """Forwards to a mergeable state."""

    def __init__(self, zero: Callable[[int], Any], metrics: int) -> None:
        self._zero, self._metrics = zero, metrics

    def create_accumulator(self) -> Any:
        """The state of no query."""
        return self._zero(self._metrics)

    def add_input(self, accumulator: State, element: State) -> State:
        """Merge one state."""
        return accumulator.merge(element)

    def merge_accumulators(self, accumulators: Iterable[State]) -> Any:
        """Merge several states."""
        merged = self._zero(self._metrics)
        for accumulator in accumulators:
            merged = merged.merge(accumulator)
        return merged

    def extract_output(self, accumulator: State) -> State:
        """The state itself."""
        return accumulator


def aggregate(partition: ScoredPartition) -> Iterator[tuple[Key, QueryAggregate]]:
    """The state of every configuration and slice of one bucket."""
    for scored in partition.configurations:
        for name, chosen in partition.slices.items():
            yield (scored.configuration, name), QueryAggregate.of(scored, chosen)


def compare(partition: ScoredPartition, baseline: int) -> Iterator[tuple[Key, PairedAggregate]]:
    """The differences from the baseline of every other configuration and slice of one bucket."""
    base = partition.configurations[baseline]
    for scored in partition.configurations:
        if scored is base:
            continue
        both = scored.scored & base.scored
        for name, chosen in partition.slices.items():
            here = both & chosen
            yield (scored.configuration, name), PairedAggregate.of(scored.values[here] - base.values[here])


def metrics_table(states: list[tuple[Key, QueryAggregate]], evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.CONFIGURATION_METRICS`, ordered by configuration, slice and metric."""
    highest = tuple(metric.definition.highest for metric in evaluation.metrics)
    found = []
    for (position, name), state in sorted(states, key=lambda pair: pair[0]):
        counts = {name: getattr(state, name) for name in ("empty", "failed", "missing")}
        counts["queries"] = state.moments.count
        key = {"config_id": evaluation.configurations[position].config_id, "slice": name}
        for metric, summary in zip(evaluation.metrics, state.result(highest), strict=True):
            found.append({**key, "metric": str(metric), **asdict(summary), **counts})
    return _table(found, tables.CONFIGURATION_METRICS)


def comparisons_table(states: list[tuple[Key, PairedAggregate]], evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.COMPARISONS`, ordered by configuration, slice and metric."""
    baseline = evaluation.configurations[evaluation.baseline].config_id
    found = []
    for (position, name), state in sorted(states, key=lambda pair: pair[0]):
        config_id = evaluation.configurations[position].config_id
        key = {"config_id": config_id, "baseline": baseline, "slice": name, "queries": state.moments.count}
        for metric, difference in zip(evaluation.metrics, state.result(), strict=True):
            found.append({**key, "metric": str(metric), "p_adjusted": None, **asdict(difference)})
    return _table(found, tables.COMPARISONS)


def _table(found: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    common = {field.name for field in tables.COMMON}
    return pa.Table.from_pylist(found, schema=pa.schema([field for field in schema if field.name not in common]))
