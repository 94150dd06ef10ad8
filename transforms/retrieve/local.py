"""Retrieve in process.

The queries of a retriever that answers in process are dealt to several workers: each share is one element after a
GroupByKey. Indexes are slow to build, so one worker builds them first, and stores them in files that all workers open;
the shares in one process use the same index. For remote retrievers, which are called, see `remote`.

queries ─► deal by retriever and share ─► retrieve
                       prepare (once) ───────┘
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa

from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.retrievers.base import Retriever, RetrieverParameters
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import Bucketed, SourceRows
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.calls.steps import Usage
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.errors import CallError, Failure, InputError
from rankbeam.transforms.records.plug_ins import blame_component, class_name
from rankbeam.transforms.records.queries import Documents, Embeddings, Query, Ranking
from rankbeam.transforms.records.race import first_of
from rankbeam.transforms.records.rankings.retrieved import documents_of, is_even

BucketFailures = tuple[int, tuple[int, Failure]]
Share = tuple[int, int]  # a source, and the number of a share in its queries
CutOfSource = tuple[int, tuple[int, int]]
"""A source, its number of truncated texts, of which its model saw only a part, and the number of all its texts."""

FAILURES, WARNINGS, CUT = "failures", "warnings", "cut"
STAGE = "retrieve"
ROWS_AT_ONCE = 64

batches.register()


@dataclass
class RetrieveRankings(beam.PTransform):
    """Run every retriever on every judged query: rankings, failures and warnings.

    Rankings are a batch of `columns.RETRIEVED` per bucket and source; a failure belongs to a query without an answer.
    """

    retrievers: Mapping[int, RetrieverParameters]
    top_k: Mapping[int, int]
    last: Mapping[int, int | None]  # the last query of each source in a race; None if it needs all
    searched: Mapping[int, Documents]
    summary: beam.PCollection[DatasetSummary]
    shares: int = 1
    embedded: beam.PCollection[Usage] | None = None
    rewritten: beam.PCollection[SourceRows] | None = None  # queries with rewritten texts, by source

    def expand(self, judged: beam.PCollection[Bucketed]) -> Any:  # Beam warns about tuples
        after = [beam.pvalue.AsSingleton(self.summary)]
        after += [] if self.embedded is None else [beam.pvalue.AsList(self.embedded)]
        if self.shares > 1:
            prepared = (
                judged.pipeline
                | "EachIndex" >> beam.Create(by_documents(self.searched))
                | "SpreadIndexes" >> beam.Reshuffle()
                | "Prepare" >> beam.FlatMap(prepare, self.retrievers, self.searched, *after)
            )
            after.append(beam.pvalue.AsList(prepared))
        outputs = (
            self._queries_by_share(judged)
            | "GroupBySource" >> beam.GroupByKey()
            | "Retrieve"
            >> beam.FlatMap(retrieve_share, self.retrievers, self.top_k, self.searched, *after)
            .with_output_types(SourceRows, failures=BucketFailures, warnings=str, cut=CutOfSource)
            .with_outputs(FAILURES, WARNINGS, CUT, main="rankings")
        )
        searched = self.searched.items()
        embeddings = {source: index.embeddings for source, index in searched if index.embeddings is not None}
        rewritten = {source for source, index in searched if index.is_rewritten}
        cut = outputs[CUT] | "WarnOfCut" >> WarnOfCut(embeddings, rewritten)
        warnings = (outputs[WARNINGS], cut) | "EveryWarning" >> beam.Flatten()
        return outputs.rankings, outputs[FAILURES], warnings

    def _queries_by_share(self, judged: beam.PCollection[Bucketed]) -> beam.PCollection[tuple[Share, Bucketed]]:
        plain = {source: last for source, last in self.last.items() if not self.searched[source].is_rewritten}
        dealt = judged | "ForEachSource" >> beam.FlatMap(for_each_source, plain, self.shares)
        if self.rewritten is None:
            return dealt
        own = {source: last for source, last in self.last.items() if source not in plain}
        deal = beam.FlatMap(for_own_source, own, self.shares)
        return (dealt, self.rewritten | "ForRewritten" >> deal) | "EveryShare" >> beam.Flatten()


def prepare(
    sources: Sequence[int],
    retrievers: Mapping[int, RetrieverParameters],
    searched: Mapping[int, Documents],
    *_: object,
) -> Iterator[int]:
    for source in sources:
        retrievers[source].prepare(searched[source])
        yield source


def retrieve_share(
    element: tuple[Share, Iterable[Bucketed]],
    retrievers: Mapping[int, RetrieverParameters],
    top_k: Mapping[int, int],
    searched: Mapping[int, Documents],
    *_: object,
) -> Iterator[object]:
    """Run a source's retriever on a share of the queries."""
    (source, _share), parts = element
    parameters = retrievers[source]
    with blame_component(parameters, "open"):
        retriever = parameters.search(searched[source])
    if not hasattr(retriever, "retrieve"):
        raise InputError(
            f"{class_name(parameters)}.open must return a Retriever, and returned {type(retriever).__name__}"
        )
    try:
        for bucket, judged in parts:
            rows, failures = retrieve(retriever, judged, top_k[source])
            count(Counter.QUERIES_ASKED, judged.num_rows)
            count(Counter.FAILURES, len(failures))
            yield bucket, (source, rows)
            for failure in failures:
                yield beam.pvalue.TaggedOutput(FAILURES, (bucket, (source, failure)))
        for warning in dict.fromkeys(getattr(retriever, "warnings", ())):
            yield beam.pvalue.TaggedOutput(WARNINGS, warning)
        yield beam.pvalue.TaggedOutput(CUT, (source, getattr(retriever, "cut_queries", (0, 0))))
    finally:
        retriever.close()


@dataclass
class WarnOfCut(beam.PTransform):
    """Warn of queries that the embedding model sees only in part."""

    embeddings: Mapping[int, Embeddings]
    rewritten: Collection[int]

    def expand(self, cut: beam.PCollection[CutOfSource]) -> beam.PCollection[str]:
        totals = cut | "SumCut" >> beam.CombinePerKey(sum_pairs)
        return totals | "SayCut" >> beam.FlatMap(cut_warning, self.embeddings, self.rewritten)


def cut_warning(element: CutOfSource, embeddings: Mapping[int, Any], rewritten: Collection[int]) -> Iterator[str]:
    """A warning of cut queries; `embeddings` are Any, because Beam cannot check a value against a protocol."""
    source, (cut, total) = element
    if cut and source in embeddings:
        what = "rewritten queries" if source in rewritten else "queries"
        yield embeddings[source].of_queries().cut_warning(what, cut, total)


def sum_pairs(numbers: Iterable[tuple[int, int]]) -> tuple[int, int]:
    firsts, seconds = 0, 0
    for first, second in numbers:
        firsts, seconds = firsts + first, seconds + second
    return firsts, seconds


def by_documents(searched: Mapping[int, Documents]) -> list[list[int]]:
    """Groups of sources that search the same documents with the same chunking, so they may share an index."""
    return list(grouped(((index.path, index.chunking), source) for source, index in searched.items()).values())


def for_each_source(element: Bucketed, last: Mapping[int, int | None], shares: int) -> Iterator[tuple[Share, Bucketed]]:
    """Pair a bucket's queries with every source that needs some of them; buckets are dealt to the shares in turn."""
    bucket, judged = element
    for source, position in last.items():
        if (queries := first_of(judged, position)).num_rows:
            yield (source, bucket % shares), (bucket, queries)


def for_own_source(
    element: SourceRows, last: Mapping[int, int | None], shares: int
) -> Iterator[tuple[Share, Bucketed]]:
    """A source's own queries, if `last` includes it."""
    bucket, (source, queries) = element
    if source in last:
        yield from for_each_source((bucket, queries), {source: last[source]}, shares)


def retrieve(retriever: Retriever, judged: pa.RecordBatch, top_k: int) -> tuple[pa.RecordBatch, list[Failure]]:
    rankings: list[tuple[str, Ranking]] = []
    failures = []
    for query_id, ranking in _answers(retriever, judged, top_k):
        if isinstance(ranking, CallError):
            failures.append(Failure(STAGE, ranking.kind, query_id, ranking.attempts, ranking.message))
            continue
        if not isinstance(ranking, Ranking):
            problem = f"must return a Ranking, and returned {type(ranking).__name__}"
            raise InputError(f"{class_name(retriever)}.retrieve {problem}")
        rankings.append((query_id, ranking))
    try:
        return batch_of(rankings, top_k), failures
    except (TypeError, ValueError) as error:
        what = "must return tuples: ids of type str, and as many numbers as scores and, if there are any, texts"
        raise InputError(f"{class_name(retriever)}.retrieve {what}: {error}") from error


def _answers(retriever: Retriever, judged: pa.RecordBatch, top_k: int) -> Iterator[tuple[str, Ranking | CallError]]:
    queries = [Query(*pair) for pair in zip(judged["query_id"].to_pylist(), judged["text"].to_pylist(), strict=True)]
    if (retrieve_all := getattr(retriever, "retrieve_all", None)) is not None:
        yield from zip((query.query_id for query in queries), retrieve_all(queries, top_k), strict=True)
        return
    for query in queries:
        try:
            with blame_component(retriever, "retrieve"):
                answer: Ranking | CallError = retriever.retrieve(query, top_k)
        except CallError as error:
            answer = error
        yield query.query_id, answer


def batch_of(rankings: Sequence[tuple[str, Ranking]], top_k: int | None) -> pa.RecordBatch:
    """A batch of `columns.RETRIEVED` with rankings; scores that are NaN become null."""
    for query_id, ranking in rankings:
        if not is_even(ranking, top_k):
            raise ValueError(f"the ranking of query {query_id!r} does not have one score or text per document")
    documents = documents_of([ranking for _, ranking in rankings], top_k)
    query_ids = pa.array([query_id for query_id, _ in rankings], pa.string())
    return pa.RecordBatch.from_arrays([query_ids, documents], schema=columns.RETRIEVED)
