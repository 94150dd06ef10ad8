"""Combine the scores of all queries per configuration and slice, and of their differences per pair."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam

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
            | "Aggregate" >> beam.Map(RunAggregate.of, self.evaluation).with_output_types(RunAggregate)
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


def warnings_of(aggregate: RunAggregate, evaluation: Evaluation) -> Iterator[str]:
    """What users should know of the scores as a whole."""
    if aggregate.unjudged:
        yield f"{aggregate.unjudged:,} rankings of queries without judgements, not scored"
    for position in sorted(aggregate.with_results - aggregate.with_judged):
        name = evaluation.configurations[position].name
        yield f"{name}: no document that it retrieved is judged, so it scores 0; are its ids those of the judgements?"
