"""Score rankings: a bucket has the same queries for every configuration, so no join is needed afterwards."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.formats.syntax.lines import repeated_at
from rankbeam.transforms.clients.retrievers import run_file
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import FAILURES, GRADES, JUDGED, RANKINGS, VALUES
from rankbeam.transforms.clients.workers import Workers
from rankbeam.transforms.kernels.arrays import BoolArray, IntArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.ranking.pools import Pool, Subtopics
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.errors import Failure, InputError
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.metrics.values import (
    metric_values,
    shows_unjudged,
    span_values,
    tie_bounds,
    unjudged_bounds,
)
from rankbeam.transforms.records.race import order_of
from rankbeam.transforms.records.rankings.fused import Answers, answers_of
from rankbeam.transforms.records.rankings.ranked import RankedSource, by_judgements, cuts_of, fill_pool
from rankbeam.transforms.records.rankings.retrieved import RetrievedRows
from rankbeam.transforms.records.rankings.spans import RankedSpans, SpanEvidence, without_place
from rankbeam.transforms.records.scores.judged import JudgedValues, judged_values, with_judged
from rankbeam.transforms.records.scores.scored import (
    PartAndWhole,
    ScoredConfiguration,
    ScoredPanel,
    ScoredPartition,
    Status,
    rank_slices,
)
from rankbeam.transforms.records.slices import slices_of

Group = tuple[int, Mapping[str, Iterable[Any]]]  # a bucket, and its parts, which have different types

batches.register()


@dataclass
class ScoreRankings(beam.PTransform):
    """Score every query of every configuration.

    The input is a dict of collections keyed by bucket: "judged" holds batches of judged queries; names that begin with
    "rankings", pairs of source and rows; and, if there are any, "failures" holds pairs of source and failure, "values"
    batches of judged values, and "grades" batches of `holes.GRADES` to fill holes.
    """

    evaluation: Evaluation
    summary: beam.PCollection[DatasetSummary]

    def expand(self, parts: dict[str, beam.PCollection]) -> beam.PCollection[ScoredPartition]:
        return (
            parts
            | "GroupByBucket" >> beam.CoGroupByKey()
            | "Score" >> beam.ParDo(ScoreFn(self.evaluation), *self._summary()).with_output_types(ScoredPartition)
        )

    def _summary(self) -> list[beam.pvalue.AsSingleton]:
        """The dataset's summary, for bounds and scales that need its highest grade."""
        is_needed = shows_unjudged(self.evaluation.metrics) or self.evaluation.holes is not None
        return [beam.pvalue.AsSingleton(self.summary)] if is_needed else []


class ScoreFn(beam.DoFn):
    """Scores buckets, a few at once."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    def start_bundle(self) -> None:
        self._workers: Workers[ScoredPartition] = Workers()

    def process(self, element: Group, summary: DatasetSummary | None = None) -> Iterator[ScoredPartition]:
        """Begin to score the bucket's queries; yield the scores of an earlier bucket."""
        _, parts = element
        arguments = (
            list(parts[JUDGED]),
            grouped(chain.from_iterable(parts[name] for name in parts if name.startswith(RANKINGS))),
            grouped(parts.get(FAILURES, ())),
            self._evaluation,
            judged_values(list(parts.get(VALUES, ()))),
            None if summary is None else summary.highest_grade,
            list(parts.get(GRADES, ())),
        )
        for partition in self._workers.submit(score, *arguments):
            yield _count_queries(partition)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for partition in self._workers.finish():
            yield GlobalWindows.windowed_value(_count_queries(partition))


def score(
    judged: Sequence[pa.RecordBatch],
    rows: Mapping[int, Sequence[pa.RecordBatch]],
    failures: Mapping[int, Sequence[Failure]],
    evaluation: Evaluation,
    values: Sequence[JudgedValues] = (),
    highest: float | None = None,
    grades: Sequence[pa.RecordBatch] = (),
) -> ScoredPartition:
    """Score some queries under every configuration.

    Rankings and failed calls are by source. The dataset's highest grade is for bounds and for the scale of a judge's
    grades, batches of `holes.GRADES` that fill holes; None omits both.
    """
    queries = judged[0] if judged else pa.RecordBatch.from_pylist([], schema=columns.JUDGED_QUERIES)
    pool, unjudged = pool_of(queries), queries["judgements"].is_null().to_numpy(zero_copy_only=False)
    evidence = SpanEvidence.of(pool) if evaluation.spans else None
    answers = answers_of(queries, rows, failures, evaluation)
    filled_pool = None
    pools: list[tuple[Pool, BoolArray | None]] = [(pool, None)]
    if evaluation.holes is not None and highest is not None:
        filled_pool = fill_pool(pool, queries["query_id"], grades, evaluation.holes.scale(highest))
        pools.append((filled_pool.pool, filled_pool.by_judge))
    bounding = highest if shows_unjudged(evaluation.metrics) else None
    scored: dict[int, ScoredConfiguration] = {}
    order = order_of(queries["query_id"])
    for number, answer in enumerate(answers):
        for cut in cuts_of(evaluation, number):
            if (problem := answer.wrong_way(cut.distance)) is not None:
                raise InputError(f"{answer.name}: {problem}")
            retrieved = answer.nearer_than(cut.distance)
            if cut.top_k is not None:
                retrieved = retrieved.first(cut.top_k, queries.num_rows)
            rules = {"ties": evaluation.ties, "spans": evaluation.spans}
            seen = [
                RankedSource.of(
                    retrieved, queries["query_id"], part, answer.source, cut.dialect, **rules, by_judge=mask
                )
                for part, mask in pools
            ]
            ranked = seen[0]
            if answer.source.refuse_repeats and (again := ranked.first_repeat(answer.source.top_k)) is not None:
                raise _repeat_error(ranked.retrieved, again, queries, answer.source.path)
            failed, absent = answer.failed_at(cut.distance), unjudged | answer.unranked
            spans = None if evidence is None else RankedSpans(ranked, evidence)
            for i in cut.configurations:
                is_asked = evaluation.configurations[i].query_mask(order)
                scored[i] = _score_one(i, seen, spans, failed, absent, is_asked, evaluation, bounding)
    configurations = with_judged(
        [scored[position] for position in sorted(scored)], queries["query_id"], values, evaluation
    )
    by_rank = rank_slices(configurations, evaluation.panels, evaluation.slices)
    return ScoredPartition(
        queries=queries.select(columns.QUERIES.names),
        slices={**dict(slices_of(queries, evaluation.slices)), **dict(by_rank)},
        configurations=configurations,
        unjudged=sum(answer.retrieved.unjudged for answer in answers),
        failures=sum(map(len, failures.values())),
        unplaced=dict(_unplaced_counts(answers)) if evaluation.spans else {},
        unranked=dict(_unranked_counts(answers, unjudged)),
        audited=None if filled_pool is None else filled_pool.audited,
    )


def pool_of(queries: pa.RecordBatch) -> Pool:
    """Flatten the judgements of `columns.JUDGED_QUERIES`."""
    lists = queries["judgements"]
    flat = lists.flatten()
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    place = np.repeat(np.arange(queries.num_rows), lengths)
    grade = flat.field("grade").to_numpy()
    return Pool(queries.num_rows, place, flat.field("doc_id"), grade, _subtopics_of(queries, lengths))


def _subtopics_of(queries: pa.RecordBatch, judgements: IntArray) -> Subtopics | None:
    if columns.SUBTOPICS.name not in queries.schema.names:
        return None
    lists = queries[columns.SUBTOPICS.name]
    pairs = lists.flatten()
    query = np.repeat(np.arange(queries.num_rows), lists.value_lengths().to_numpy().astype(np.int64))
    begins = np.cumsum(judgements) - judgements
    place = pairs.field("judgement").to_numpy().astype(np.int64)
    subtopic, grade = pairs.field("subtopic").to_numpy().astype(np.int64), pairs.field("grade").to_numpy()
    return Subtopics(queries.num_rows, begins[query] + place, query, subtopic, grade)


def _unplaced_counts(answers: Sequence[Answers]) -> Iterator[tuple[int, PartAndWhole]]:
    for number, answer in enumerate(answers):
        if answer.source.fusion is None:
            without = without_place(answer.retrieved.doc_id)
            yield number, (int(without.sum()), len(without))


def _unranked_counts(answers: Sequence[Answers], unjudged: BoolArray) -> Iterator[tuple[int, int]]:
    for number, answer in enumerate(answers):
        if lacking := int((answer.unranked & ~unjudged).sum()):
            yield number, lacking


def _score_one(
    position: int,
    seen: Sequence[RankedSource],
    spans: RankedSpans | None,
    failed: BoolArray,
    absent: BoolArray,
    is_asked: BoolArray,
    evaluation: Evaluation,
    highest: float | None,
) -> ScoredConfiguration:
    """Score one configuration, whose ranking is `seen` through people's judgements, and perhaps with holes filled."""
    configuration, ranked = evaluation.configurations[position], seen[0]
    source, dialect, top_k = evaluation.sources[configuration.source], configuration.dialect, configuration.top_k
    metrics = [dialect.metric(metric) for metric in evaluation.retrieval]
    chunks = any(metric.definition.chunks for metric in metrics)
    if spans is None:
        assessed = [part.assess(top_k, chunks=chunks) for part in seen]
        values, retrieved = by_judgements(metrics, assessed, metric_values), assessed[0][0].retrieved
    else:
        cut = spans.assessment.upto(top_k)
        values, retrieved = span_values(metrics, cut), cut.retrieved
    status = np.where(retrieved == 0, Status.EMPTY, Status.OK).astype(np.int8)
    if dialect.skips_missing:
        status[ranked.missing] = Status.MISSING
    status[failed] = Status.FAILED
    status[absent] = Status.MISSING
    status[~is_asked] = Status.NOT_ASKED
    bounds = None
    # If a document may have several rows, ties also decide how many documents a cut leaves.
    no_repeats = source.refuse_repeats or source.fusion is not None
    if evaluation.ties and ranked.by_score and (top_k is None or no_repeats):
        uncut = [part.assess(None, chunks=chunks) for part in seen]
        bounds = by_judgements(metrics, uncut, lambda part, once, every: tie_bounds(part, once, every, top_k))
    row_grade = None if spans is None else spans.row_grade
    unjudged = None
    if highest is not None and spans is None:
        unjudged = by_judgements(metrics, assessed, lambda part, once, _: unjudged_bounds(part, once, highest))
    kept_documents = seen[-1].documents(top_k, row_grade) if source.keep_rankings else None
    has_judged = bool((ranked.judgement >= 0).any()) if spans is None else spans.touches
    has_results = bool(retrieved.any())
    examples = ranked.first_ids() if has_results and not has_judged and len(ranked.pool.doc_id) else None
    retrieval = ScoredPanel(status, values, bounds, unjudged_bounds=unjudged)
    values[~retrieval.scored] = np.nan
    return ScoredConfiguration(position, (retrieval,), kept_documents, has_results, has_judged, examples)


def _count_queries(partition: ScoredPartition) -> ScoredPartition:
    if partition.queries.num_rows:
        count(Counter.QUERIES_SCORED, partition.queries.num_rows * len(partition.configurations))
    return partition


def _repeat_error(retrieved: RetrievedRows, first: int, queries: pa.RecordBatch, path: str | None) -> InputError:
    query_id, doc_id = queries["query_id"][int(retrieved.query[first])].as_py(), retrieved.doc_id[first].as_py()
    problem = f"document {doc_id!r} occurs more than once in the ranking of query {query_id!r}"
    if path is None:
        advice = "a chunk must not; with dataset.unit: document, its best rank counts"
        return InputError(f"a retriever's answer cannot be scored: {problem}; {advice}")
    advice = "remove one, or set duplicates: collapse (--duplicates collapse) to keep its best rank"
    return repeated_at(problem, list(run_file.locate(path, query_id, doc_id)), advice)
