"""Combine the scores of all queries per configuration and slice, and of their differences per pair."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import apache_beam as beam

from rankbeam.transforms.clients.formats import overlap
from rankbeam.transforms.records.evaluation import Evaluation
from rankbeam.transforms.records.scores.aggregates import UNMET, RunAggregate
from rankbeam.transforms.records.scores.scored import ScoredPartition
from rankbeam.transforms.records.slices import ALL


@dataclass
class AggregateScores(beam.PTransform):
    """One `RunAggregate` of all scores; as a side input it also shows that all queries are scored.

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
    """Warnings about the scores as a whole."""
    yield from _empty(aggregate, evaluation)
    if aggregate.unjudged:
        yield f"{aggregate.unjudged:,} rankings of queries without judgements, not scored"
    yield from evaluation.warnings()
    yield from _unplaced(aggregate, evaluation)
    without_judged = _without_judged(aggregate, evaluation)
    for position in sorted((aggregate.with_results - aggregate.with_judged) & set(aggregate.examples)):
        configuration, (retrieved, judged) = evaluation.configurations[position], aggregate.examples[position]
        warning = f"{configuration.name}: no document that it retrieved is judged, so it scores 0; "
        warning += f"it has ids such as {retrieved!r}, the judgements such as {judged!r}"
        is_paid = evaluation.sources[configuration.source].pool is not None
        is_unmet = is_paid and configuration.source in without_judged and not evaluation.allow_disjoint
        yield f"{warning}; make the ids agree (doc_id), or {UNMET}" if is_unmet else warning


def _unplaced(aggregate: RunAggregate, evaluation: Evaluation) -> Iterator[str]:
    for source, (part, whole) in sorted(aggregate.unplaced.items()):
        if part:
            name = evaluation.configurations[evaluation.owner(source)].name
            what = f"{part:,} of {whole:,} results have no known place in their document"
            yield f"{name}: {what}, so they are relevant to no evidence; their text counts as retrieved"


def met(aggregate: RunAggregate, evaluation: Evaluation, qrels: str) -> RunAggregate:
    """The state of all queries, after a check that the ids of every run that was read match those of the judgements.

    Only a run without a judged document is read again: it may be bad, or its ids may differ.

    Args:
        aggregate: of all queries.
        evaluation: the sources of rankings.
        qrels: path of the judgements.

    Raises:
        InputError: a run shares no query, or no document, with the judgements.
    """
    if not evaluation.allow_disjoint:
        paths = [evaluation.sources[source].path for source in sorted(_without_judged(aggregate, evaluation))]
        overlap.refuse_disjoint(qrels, [("run", path) for path in paths if path is not None])
    return aggregate


def _without_judged(aggregate: RunAggregate, evaluation: Evaluation) -> set[int]:
    """The sources of which no configuration retrieved a judged document."""
    judged = {evaluation.configurations[position].source for position in aggregate.with_judged}
    return {each.source for each in evaluation.configurations} - judged


def _empty(aggregate: RunAggregate, evaluation: Evaluation) -> Iterator[str]:
    for position, each in enumerate(evaluation.configurations):
        if evaluation.sources[each.source].replayed:  # its own warning says which answers have no ranking
            continue
        state = aggregate.queries[position, 0, ALL]
        if position not in aggregate.with_results and state.empty + state.missing:
            is_read = evaluation.sources[each.source].path is not None
            advice = "; are its query ids those of the judgements?" if is_read else ""
            yield f"{each.name}: no result for any judged query{advice}"
