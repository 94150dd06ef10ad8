"""Call remote retrievers, and collect rankings from their answers."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.calls.task_batches import batches_of
from rankbeam.transforms.clients.retrievers.base import PANEL, Retrieve
from rankbeam.transforms.clients.storage.batches import Bucketed, SourceRows
from rankbeam.transforms.kernels.arrays import IntArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask, RecalledTasks, Subject, Task
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import Failure, FailureKind
from rankbeam.transforms.records.metrics.evaluation import Evaluation
from rankbeam.transforms.records.queries import Ranking
from rankbeam.transforms.records.race import first_of
from rankbeam.transforms.records.rankings.retrieved import rankings_in
from rankbeam.transforms.retrieve.local import (
    CUT,
    FAILURES,
    ROWS_AT_ONCE,
    STAGE,
    BucketFailures,
    batch_of,
)

_RECALLED_AT_ONCE = 4096  # rankings of all buckets


def tasks_of(
    element: Bucketed, works: Mapping[int, Retrieve], last: Mapping[int, int | None], _after: object = None
) -> Iterator[object]:
    bucket, judged = element
    for source, work in works.items():
        here = first_of(judged, last.get(source))
        cut = list[int]()
        query_ids, questions = here["query_id"].to_pylist(), work.of_queries(here, cut)
        if cut:
            yield beam.pvalue.TaggedOutput(CUT, (source, (sum(cut), len(query_ids))))
        tasks = [
            Task(question[0], work.service, question, (Subject(PANEL, query_id, bucket, (source,)),))
            for query_id, question in zip(query_ids, questions, strict=True)
        ]
        for batch in batches_of(tasks):
            yield work.service, batch


def tasks_of_rewritten(
    element: SourceRows, works: Mapping[int, Retrieve], last: Mapping[int, int | None], _after: object = None
) -> Iterator[object]:
    bucket, (source, queries) = element
    if source in works:
        yield from tasks_of((bucket, queries), {source: works[source]}, last)


@dataclass
class CollectRankings(beam.PTransform):
    """Collect batches of `columns.RETRIEVED` per bucket and source, and failures: answers that cannot be scored.

    The next stage groups them by bucket, so a later failure does not repeat the calls.
    """

    evaluation: Evaluation
    recalled: beam.PCollection[RecalledTasks] | None = None

    def expand(self, answers: beam.PCollection[CallAnswer]) -> Any:  # Beam warns about tuples
        collected = [answers | "Collect" >> self._collect_with(CollectRankingsFn)]
        if self.recalled is not None:
            collected.append(self.recalled | "CollectRecalled" >> self._collect_with(CollectRecalledFn))
        rankings, failures = [entry.rankings for entry in collected], [entry[FAILURES] for entry in collected]
        return rankings | "EveryRanking" >> beam.Flatten(), failures | "EveryFailure" >> beam.Flatten()

    def _collect_with(self, fn: "type[CollectRankingsFn | CollectRecalledFn]") -> beam.PTransform:
        collect = beam.ParDo(fn(self.evaluation)).with_output_types(SourceRows, failures=BucketFailures)
        return collect.with_outputs(FAILURES, main="rankings")


class CollectRankingsFn(beam.DoFn):
    """Collects rankings one by one."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    def start_bundle(self) -> None:
        self._rankings: defaultdict[tuple[int, int], list[tuple[str, Ranking]]] = defaultdict(list)

    def process(self, element: CallAnswer) -> Iterator[object]:
        by_source = grouped((source, subject) for subject in element.subjects for source in subject.positions)
        for source, subjects in by_source.items():
            yield from self.collect(element.value, source, subjects)

    def collect(self, ranking: Ranking, source: int, subjects: list[Subject]) -> Iterator[object]:
        """Add a ranking for subjects; yield full batches, and failures if the ranking is unusable."""
        problem = _unusable(ranking, source, self._evaluation)
        uncut = _cannot_be_cut(ranking, source, self._evaluation) if problem is None else None
        for subject in subjects:
            key = (subject.bucket, source)
            if (wrong := problem or uncut) is not None:
                count(Counter.FAILURES, 1)
                kind = FailureKind.MALFORMED
                failure = Failure(STAGE, kind, subject.query_id, 1, wrong, only_thresholds=problem is None)
                yield beam.pvalue.TaggedOutput(FAILURES, (subject.bucket, (source, failure)))
            if problem is not None:
                continue
            self._rankings[key].append((subject.query_id, ranking))
            if len(self._rankings[key]) >= ROWS_AT_ONCE:
                yield self._batch(key, self._rankings.pop(key))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for key, rankings in self._rankings.items():
            yield GlobalWindows.windowed_value(self._batch(key, rankings))

    def _batch(self, key: tuple[int, int], rankings: list[tuple[str, Ranking]]) -> SourceRows:
        bucket, source = key
        return bucket, (source, batch_of(rankings, self._evaluation.sources[source].top_k))


class CollectRecalledFn(beam.DoFn):
    """Collects rankings that arrive in large batches."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._one_by_one = CollectRankingsFn(evaluation)

    def start_bundle(self) -> None:
        self._one_by_one.start_bundle()
        self._waiting: defaultdict[int, list[tuple[IntArray, pa.RecordBatch]]] = defaultdict(list)

    def process(self, element: RecalledTasks) -> Iterator[object]:
        """Add rankings for all subjects; yield a batch for each bucket once there are many rows."""
        pairs = zip(element.tasks, element.subjects, strict=True)
        by_source = grouped((source, pair) for pair in pairs for source in pair[1].positions)
        for source, rows in by_source.items():
            yield from self._collect(element.values, source, rows)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for source in list(self._waiting):
            yield from map(GlobalWindows.windowed_value, self._batches(source))
        yield from self._one_by_one.finish_bundle()

    def _collect(self, rankings: pa.ListArray, source: int, rows: list[tuple[int, Subject]]) -> Iterator[object]:
        top_k = self._evaluation.sources[source].top_k
        tasks = np.array([task for task, _ in rows])
        is_each_once = np.array_equal(tasks, np.arange(len(rankings)))  # the usual case: nothing is copied
        documents = rankings if is_each_once else rankings.take(pa.array(tasks))
        if top_k is not None and pc.max(documents.value_lengths()).as_py() > top_k:
            documents = pc.list_slice(documents, 0, top_k)
        if self._is_doubtful(documents, source):
            for ranking, (_, subject) in zip(rankings_in(documents), rows, strict=True):
                yield from self._one_by_one.collect(ranking, source, [subject])
            return
        query_ids = pa.array([subject.query_id for _, subject in rows], pa.string())
        batch = pa.RecordBatch.from_arrays([query_ids, documents], schema=columns.RETRIEVED)
        self._waiting[source].append((np.array([subject.bucket for _, subject in rows]), batch))
        if sum(entry.num_rows for _, entry in self._waiting[source]) >= _RECALLED_AT_ONCE:
            yield from self._batches(source)

    def _is_doubtful(self, documents: pa.ListArray, source: int) -> bool:
        """Return whether some ranking may be unusable, or cannot be cut."""
        flat = documents.flatten()
        if self._evaluation.sources[source].refuse_repeats:
            doc_ids = flat.field("doc_id").dictionary_encode()
            codes = doc_ids.indices.to_numpy() + pc.list_parent_indices(documents).to_numpy() * len(doc_ids.dictionary)
            if len(np.unique(codes)) < len(codes):
                return True
        return _is_cut(source, self._evaluation) and flat.field("score").null_count > 0

    def _batches(self, source: int) -> Iterator[SourceRows]:
        """The waiting rows, as one batch for each bucket."""
        waiting = self._waiting.pop(source)
        buckets = np.concatenate([row_buckets for row_buckets, _ in waiting])
        rows = pa.concat_batches([batch for _, batch in waiting])
        order = np.argsort(buckets, kind="stable")
        for here in np.split(order, np.flatnonzero(np.diff(buckets[order])) + 1):
            yield int(buckets[here[0]]), (source, rows.take(pa.array(here)))


def _unusable(ranking: Ranking, source: int, evaluation: Evaluation) -> str | None:
    source_evaluation = evaluation.sources[source]
    doc_ids = ranking.doc_ids[: source_evaluation.top_k]
    if source_evaluation.refuse_repeats and len(set(doc_ids)) < len(doc_ids):
        again = next(name for place, name in enumerate(doc_ids) if name in doc_ids[:place])
        return f"{again!r} occurs twice in the answer; with dataset.unit: document, the best rank of a document counts"
    return None


def _is_cut(source: int, evaluation: Evaluation) -> bool:
    configurations, plans = evaluation.configurations, (entry.rerank for entry in evaluation.sources)
    by_rerankers = (plan.distance for plan in plans if plan is not None and plan.source == source)
    distances = (configuration.distance for configuration in configurations if configuration.source == source)
    return any(distance is not None for distance in (*distances, *by_rerankers))


def _cannot_be_cut(ranking: Ranking, source: int, evaluation: Evaluation) -> str | None:
    """The reason why a threshold cannot be applied to an answer; None if it can."""
    if _is_cut(source, evaluation) and any(map(math.isnan, ranking.scores[: evaluation.sources[source].top_k])):
        return "a document of the answer has no score, so it cannot be compared with the threshold"
    return None


def failures_of(failed: FailedTask) -> Iterator[BucketFailures]:
    for source in failed.subject.positions:
        yield failed.subject.bucket, (source, failed.failure)
