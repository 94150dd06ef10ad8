"""Combine the scores of all queries per configuration and slice, and the differences per pair of configurations.

scored queries ─► state of each slice ─► merge by slice ─► estimates of each slice ─► estimates of the run

A state may take megabytes. So several workers merge different slices, and only estimates are brought together. States
that wait for their merge are in a temporary file: all slices together, with all pairs, take a gigabyte.
"""

import copyreg
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import apache_beam as beam
import pyarrow as pa

from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.formats import overlap
from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.kernels.statistics.moments import ClusterTotals
from rankbeam.transforms.kernels.statistics.ppi import FEW_LABELS, LEAST_LABELS
from rankbeam.transforms.merge import MergeFn
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.scores.aggregates import UNMET, RunAggregate
from rankbeam.transforms.records.scores.estimates import RunEstimates
from rankbeam.transforms.records.scores.means import cluster_moments, cluster_totals
from rankbeam.transforms.records.scores.scored import ScoredPartition
from rankbeam.transforms.records.slices import ALL

SliceAggregate = tuple[tuple[str, int], RunAggregate]
"""The name of a slice with the number of a piece of the pairs, and their state."""
PartOfClusters = tuple[tuple[str, int, int], ClusterTotals]
"""The name of a slice with the numbers of a piece and of a part; and the sums of the clusters in that part."""


def _reduce(aggregate: RunAggregate) -> tuple[Callable[[bytes], RunAggregate], tuple[bytes]]:
    """A pickle of a state: its bytes, or their place in a spill file."""
    encoded = pickle.dumps(vars(aggregate))
    place = spill.write(pa.py_buffer(encoded))
    return (_decode, (encoded,)) if place is None else (_decode_spilled, (place,))


def _decode(encoded: bytes | pa.Buffer) -> RunAggregate:
    return RunAggregate(**pickle.loads(encoded))  # noqa: S301  another process of this job wrote it


def _decode_spilled(place: bytes) -> RunAggregate:
    return _decode(spill.read(place))


copyreg.pickle(RunAggregate, _reduce)


@dataclass
class AggregateScores(beam.PTransform):
    """Aggregate scores to one state for each slice."""

    evaluation: Evaluation

    def expand(self, scored: beam.PCollection[ScoredPartition]) -> beam.PCollection[SliceAggregate]:
        aggregates = scored | "Aggregate" >> beam.FlatMap(slices_of, self.evaluation).with_output_types(SliceAggregate)
        if self.evaluation.statistics.cluster is not None:
            clusters = (
                scored
                | "ClusterTotals" >> beam.FlatMap(totals_of, self.evaluation).with_output_types(PartOfClusters)
                | "GroupByCluster" >> beam.CombinePerKey(MergeFn(ClusterTotals))
                | "ClusterMoments" >> beam.Map(moments_of, self.evaluation).with_output_types(SliceAggregate)
            )
            aggregates = [aggregates, clusters] | "WithClusters" >> beam.Flatten()
        return aggregates | "Merge" >> beam.CombinePerKey(MergeFn(RunAggregate))


@dataclass
class EstimateScores(beam.PTransform):
    """Compute one `RunEstimates` of all slices; as a side input, it also shows that all queries are scored."""

    evaluation: Evaluation

    def expand(self, aggregates: beam.PCollection[SliceAggregate]) -> beam.PCollection[RunEstimates]:
        return (
            aggregates
            | "Estimate" >> beam.Map(estimates_of, self.evaluation).with_output_types(RunEstimates)
            | "Together" >> beam.CombineGlobally(MergeFn(RunEstimates)).without_defaults()
        )


def slices_of(partition: ScoredPartition, evaluation: Evaluation) -> Iterator[SliceAggregate]:
    for number, piece in enumerate(evaluation.pieces()):
        for name, state in RunAggregate.of(partition, piece).by_slice():
            yield (name, number), state


def totals_of(partition: ScoredPartition, evaluation: Evaluation) -> Iterator[PartOfClusters]:
    for number, piece in enumerate(evaluation.pieces()):
        for (name, part), totals in cluster_totals(partition, piece):
            yield (name, number, part), totals


def moments_of(element: PartOfClusters, evaluation: Evaluation) -> SliceAggregate:
    """The state of a slice with the whole clusters of one part; it merges with the other parts."""
    (name, number, _), totals = element
    moments = cluster_moments(totals, evaluation.pieces()[number])
    return (name, number), RunAggregate(clusters={name: moments})


def estimates_of(element: SliceAggregate, evaluation: Evaluation) -> RunEstimates:
    (_, number), aggregate = element
    make = RunEstimates.of_differences if number else RunEstimates.of
    estimates = make(aggregate, evaluation.pieces()[number])
    count(Counter.COMPARISONS, sum(rows.num_rows for rows in estimates.differences.values()))
    return estimates


def warnings_of(estimates: RunEstimates, evaluation: Evaluation) -> Iterator[str]:
    yield from _empty_warnings(estimates, evaluation)
    if estimates.unjudged:
        yield f"{pluralize(estimates.unjudged, 'ranking')} of queries without judgements, not scored"
    yield from evaluation.warnings()
    yield from _cluster_warnings(estimates, evaluation)
    yield from _unplaced_warnings(estimates, evaluation)
    yield from _unranked_warnings(estimates, evaluation)
    yield from _label_warnings(estimates, evaluation)
    without_judged = _without_judged(estimates, evaluation)
    for position in sorted((estimates.with_results - estimates.with_judged) & set(estimates.examples)):
        configuration, (retrieved, judged) = evaluation.configurations[position], estimates.examples[position]
        if retrieved == judged:  # the ids agree
            yield f"{configuration.name}: no document that it retrieved is judged for its query, so it scores 0"
            continue
        warning = f"{configuration.name}: no document that it retrieved is judged, so it scores 0; "
        warning += f"it has ids such as {retrieved!r}, the judgements such as {judged!r}"
        is_paid = evaluation.sources[configuration.source].pool is not None
        is_unmet = is_paid and configuration.source in without_judged and not evaluation.allow_disjoint
        yield f"{warning}; make the ids agree (doc_id), or {UNMET}" if is_unmet else warning


def _unplaced_warnings(estimates: RunEstimates, evaluation: Evaluation) -> Iterator[str]:
    for source, (part, whole) in sorted(estimates.unplaced.items()):
        if part:
            name = evaluation.configurations[evaluation.owner(source)].name
            what = f"{part:,} of {whole:,} results have no known place in their document"
            yield f"{name}: {what}, so they are relevant to no evidence; their text counts as retrieved"


def _unranked_warnings(estimates: RunEstimates, evaluation: Evaluation) -> Iterator[str]:
    for source, answers in sorted(estimates.unranked.items()):
        if evaluation.retrieval and evaluation.sources[source].pool is not None:  # replays have their own warnings
            name = evaluation.configurations[evaluation.owner(source)].name
            what = f"{pluralize(answers, 'answer has', 'answers have')} no contexts, or contexts without an id"
            yield f"{name}: {what}, so metrics of rankings are missing there; give every context an id"


def _label_warnings(estimates: RunEstimates, evaluation: Evaluation) -> Iterator[str]:
    """Warnings about means that combine labels and judge."""
    names = [str(metric) for panel in evaluation.panels if panel.has_labels for metric in panel.metrics]
    for configuration, name in product(evaluation.configurations, names):
        row = estimates.means[ALL][configuration.config_id, name]
        queries = pluralize(row.queries, "query", "queries")
        if row.mean is None:
            advice = f"a random sample of at least {LEAST_LABELS}, drawn for this metric, is needed: decide all of its "
            advice += "items, or draw further queries with rankbeam label OUT --sample N or --more N"
            if row.queries >= LEAST_LABELS:
                advice = "too many others lack a label, or have no value by people, so these are not a random sample: "
                advice += "decide all items of the drawn queries"
            yield f"{configuration.name}: {name} has {queries} completely labelled; {advice}"
        elif row.queries < FEW_LABELS:
            yield f"{configuration.name}: {name} has {queries} with labels; {FEW_LABELS} or more are better"
        elif not row.judge_power:
            yield f"{configuration.name}: {name}: the judge adds nothing to the labels"


def check_overlap(estimates: RunEstimates, evaluation: Evaluation, qrels: str) -> RunEstimates:
    """Return the estimates after checking that the ids in each run file match those in the judgements.

    Only runs without any judged document are read again: they may be bad, or their ids may differ.
    """
    if not evaluation.allow_disjoint:
        paths = [evaluation.sources[source].path for source in sorted(_without_judged(estimates, evaluation))]
        overlap.refuse_disjoint(qrels, [("run", path) for path in paths if path is not None])
    return estimates


def _cluster_warnings(estimates: RunEstimates, evaluation: Evaluation) -> Iterator[str]:
    cluster, rows = evaluation.statistics.cluster, estimates.means.get(ALL, {}).values()
    if cluster is not None and all(row.clusters == row.queries for row in rows):
        yield f"statistics.cluster: no two queries have the same {cluster}, so every query is its own cluster"
    elif cluster is not None and all(row.clusters in (None, 0, 1) for row in rows):
        yield f"all queries have the same {cluster}, so means have no intervals, and differences no tests"


def _without_judged(estimates: RunEstimates, evaluation: Evaluation) -> set[int]:
    """The sources none of whose configurations retrieved a judged document."""
    judged = {evaluation.configurations[position].source for position in estimates.with_judged}
    return {configuration.source for configuration in evaluation.configurations} - judged


def _empty_warnings(estimates: RunEstimates, evaluation: Evaluation) -> Iterator[str]:
    for position, configuration in enumerate(evaluation.configurations):
        if evaluation.sources[configuration.source].replayed:  # another warning names the answers without a ranking
            continue
        if position in estimates.resultless - estimates.with_results:
            is_read = evaluation.sources[configuration.source].path is not None
            advice = "; does it use the same query ids as the judgements?" if is_read else ""
            yield f"{configuration.name}: no result for any judged query{advice}"
