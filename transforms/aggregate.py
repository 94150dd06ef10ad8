"""Combine the scores of all queries per configuration and slice, and compare configurations query by query."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa

from transforms.records import tables
from transforms.records.aggregates import RunAggregate
from transforms.records.evaluation import Evaluation
from transforms.records.scored import ScoredPartition


@dataclass
class AggregateScores(beam.PTransform):
    """One `RunAggregate` of all scores; as a side input it also says that everything has been scored.

    Attributes:
        evaluation: configurations, metrics, slices and the baseline.
    """

    evaluation: Evaluation

    def expand(self, scored: beam.PCollection[ScoredPartition]) -> beam.PCollection[RunAggregate]:
        """Add the steps."""
        return (
            scored
            | "Aggregate" >> beam.Map(RunAggregate.of, self.evaluation.baseline).with_output_types(RunAggregate)
            | "Merge" >> beam.CombineGlobally(MergeAggregatesFn()).without_defaults()
        )


class MergeAggregatesFn(beam.CombineFn):
    """Forwards to `RunAggregate`."""

    def create_accumulator(self) -> RunAggregate:
        """The state of no query."""
        return RunAggregate()

    def add_input(self, accumulator: RunAggregate, element: RunAggregate) -> RunAggregate:
        """Merge one state."""
        return accumulator.merge(element)

    def merge_accumulators(self, accumulators: Iterable[RunAggregate]) -> RunAggregate:
        """Merge several states."""
        merged = RunAggregate()
        for accumulator in accumulators:
            merged = merged.merge(accumulator)
        return merged

    def extract_output(self, accumulator: RunAggregate) -> RunAggregate:
        """The state itself."""
        return accumulator


def metrics_table(aggregate: RunAggregate, evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.CONFIGURATION_METRICS`, without the common columns, by configuration, slice and metric."""
    highest = tuple(metric.definition.highest for metric in evaluation.metrics)
    found = []
    for (position, name), state in sorted(aggregate.queries.items()):
        counts = {name: getattr(state, name) for name in ("empty", "failed", "missing")}
        counts["queries"] = state.moments.count
        key = {"config_id": evaluation.configurations[position].config_id, "slice": name}
        for metric, summary in zip(evaluation.metrics, state.result(highest), strict=True):
            found.append({**key, "metric": str(metric), **asdict(summary), **counts})
    return _table(found, tables.CONFIGURATION_METRICS)


def comparisons_table(aggregate: RunAggregate, evaluation: Evaluation) -> pa.Table:
    """Rows of `tables.COMPARISONS`, without the common columns, by configuration, slice and metric."""
    baseline = evaluation.configurations[evaluation.baseline].config_id
    found = []
    for (position, name), state in sorted(aggregate.pairs.items()):
        config_id = evaluation.configurations[position].config_id
        key = {
            "config_id": config_id,
            "baseline": baseline,
            "slice": name,
            "queries": state.moments.count,
            "unpaired": 0,
        }
        for metric, difference in zip(evaluation.metrics, state.result(), strict=True):
            found.append({**key, "metric": str(metric), "p_adjusted": None, **asdict(difference)})
    return _table(found, tables.COMPARISONS)


def _table(found: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    common = {field.name for field in tables.COMMON}
    return pa.Table.from_pylist(found, schema=pa.schema([field for field in schema if field.name not in common]))


def warnings_of(aggregate: RunAggregate, evaluation: Evaluation) -> Iterator[str]:
    """What users should know of the scores as a whole."""
    if aggregate.unjudged:
        yield f"{aggregate.unjudged:,} rankings of queries without judgements, not scored"
    for position in sorted(aggregate.with_results - aggregate.with_judged):
        name = evaluation.configurations[position].name
        yield f"{name}: no document that it retrieved is judged, so it scores 0; are its ids those of the judgements?"
