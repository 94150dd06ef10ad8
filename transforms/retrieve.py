"""Ask the retrievers.

All questions to a retriever that answers in process form one element after a GroupByKey, so its index is opened once,
on one worker, and several retrievers are asked in parallel. Remote ones are asked by calls, which `transforms.call`
makes: here is what they ask, and what becomes of the answers.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from transforms.clients import batches
from transforms.clients.batches import Bucketed, SourceRows
from transforms.clients.remote import RemoteRetriever
from transforms.clients.retrievers import Retriever, RetrieverParameters
from transforms.records import columns
from transforms.records.calls import Answer, Call, FailedCall, Reach
from transforms.records.counters import Counter, count
from transforms.records.dataset import DatasetSummary
from transforms.records.errors import CallError, InputError
from transforms.records.evaluation import Evaluation, Query, Ranking
from transforms.records.failures import Failure, FailureKind

BucketFailures = tuple[int, tuple[int, Failure]]

FAILURES, WARNINGS = "failures", "warnings"
STAGE = "retrieve"
_ROWS_AT_ONCE = 64

batches.register()


class Retrieved(NamedTuple):
    """What `RetrieveRankings` returns."""

    rankings: beam.PCollection[SourceRows]
    """Per bucket and source a batch of `columns.RETRIEVED`."""
    failures: beam.PCollection[BucketFailures]
    """Per bucket, source and query that has no answer, why."""
    warnings: beam.PCollection[str]
    """What users should know of a retriever."""


@dataclass
class RetrieveRankings(beam.PTransform):
    """Ask every retriever every judged query.

    Attributes:
        retrievers: for each source, the parameters of its retriever.
        top_k: for each source, how many results a query needs.
        corpus: path of the corpus that retrievers index.
        summary: the dataset's summary: nothing is asked before the whole dataset was found good.
    """

    retrievers: Mapping[int, RetrieverParameters]
    top_k: Mapping[int, int]
    corpus: str | None
    summary: beam.PCollection[DatasetSummary]

    def expand(self, judged: beam.PCollection[Bucketed]) -> Any:  # a Retrieved; Beam warns of named results
        """Add the steps."""
        outputs = (
            judged
            | "ForEachSource" >> beam.FlatMap(for_each_source, list(self.retrievers))
            | "GroupBySource" >> beam.GroupByKey()
            | "Retrieve"
            >> beam.ParDo(RetrieveFn(self.retrievers, self.top_k, self.corpus), beam.pvalue.AsSingleton(self.summary))
            .with_output_types(SourceRows, failures=BucketFailures, warnings=str)
            .with_outputs(FAILURES, WARNINGS, main="rankings")
        )
        return Retrieved(outputs.rankings, outputs[FAILURES], outputs[WARNINGS])


class RetrieveFn(beam.DoFn):
    """Asks one source all queries."""

    def __init__(
        self, retrievers: Mapping[int, RetrieverParameters], top_k: Mapping[int, int], corpus: str | None
    ) -> None:
        self._retrievers, self._top_k, self._corpus = dict(retrievers), dict(top_k), corpus

    def process(self, element: tuple[int, Iterable[Bucketed]], summary: DatasetSummary) -> Iterator[object]:
        """Yield a batch of rankings per bucket, and a failure per query that has none."""
        del summary  # waiting for it is all it is for
        source, parts = element
        retriever = self._retrievers[source].open(self._corpus)
        try:
            for warning in getattr(retriever, "warnings", ()):
                yield beam.pvalue.TaggedOutput(WARNINGS, warning)
            for bucket, judged in parts:
                rows, failures = retrieve(retriever, judged, self._top_k[source])
                count(Counter.QUERIES_ASKED, judged.num_rows)
                count(Counter.FAILURES, len(failures))
                yield bucket, (source, rows)
                for failure in failures:
                    yield beam.pvalue.TaggedOutput(FAILURES, (bucket, (source, failure)))
        finally:
            retriever.close()


def for_each_source(element: Bucketed, sources: list[int]) -> Iterator[tuple[int, Bucketed]]:
    """Pair the queries of a bucket with every source that is asked."""
    for source in sources:
        yield source, element


def retrieve(retriever: Retriever, judged: pa.RecordBatch, top_k: int) -> tuple[pa.RecordBatch, list[Failure]]:
    """Ask one retriever some queries.

    Args:
        retriever: the retriever.
        judged: `columns.JUDGED_QUERIES`.
        top_k: results wanted per query; more are cut off.

    Returns:
        The results, as `columns.RETRIEVED`, and the failures.
    """
    rows: list[dict[str, Any]] = []
    failures = []
    for query_id, text in zip(judged["query_id"].to_pylist(), judged["text"].to_pylist(), strict=True):
        try:
            ranking = retriever.retrieve(Query(query_id, text), top_k)
        except CallError as error:
            failures.append(Failure(STAGE, error.kind, query_id, error.attempts, error.message))
            continue
        if not isinstance(ranking, Ranking):
            found = f"{type(retriever).__module__}.{type(retriever).__qualname__}"
            raise InputError(f"{found}.retrieve must return a Ranking, and returned {type(ranking).__name__}")
        rows.append(row_of(query_id, ranking, top_k))
    return pa.RecordBatch.from_pylist(rows, schema=columns.RETRIEVED), failures


def row_of(query_id: str, ranking: Ranking, top_k: int | None) -> dict[str, Any]:
    """A row of `columns.RETRIEVED`; a score that is not a number is none."""
    texts = ranking.texts or (None,) * len(ranking.doc_ids)
    documents = islice(zip(ranking.doc_ids, ranking.scores, texts, strict=True), top_k)
    return {
        "query_id": query_id,
        "documents": [
            {"doc_id": name, "score": None if math.isnan(score) else score, "text": said}
            for name, score, said in documents
        ],
    }


@dataclass(frozen=True)
class Asked:
    """A remote retriever that is asked.

    Attributes:
        retriever: its parameters.
        kind: its type.
        pool: the quota pool that pays.
        reach: how far into the ranking.
    """

    retriever: RemoteRetriever
    kind: str
    pool: str
    reach: Reach


def calls_of(element: Bucketed, asked: Mapping[int, Asked]) -> Iterator[Call]:
    """The calls that ask remote retrievers the queries of a bucket.

    Args:
        element: a bucket, and its `columns.JUDGED_QUERIES`.
        asked: for each source, its retriever.
    """
    bucket, judged = element
    for query_id, text in zip(judged["query_id"].to_pylist(), judged["text"].to_pylist(), strict=True):
        for source, each in asked.items():
            query = Query(query_id, text)
            yield each.retriever.call(each.kind, each.pool, source, query, each.reach, bucket)


class Collected(NamedTuple):
    """What `CollectRankings` returns."""

    rankings: beam.PCollection[SourceRows]
    """Per bucket and source batches of `columns.RETRIEVED`."""
    failures: beam.PCollection[BucketFailures]
    """Per bucket, source and query whose answer cannot be scored, why."""


@dataclass
class CollectRankings(beam.PTransform):
    """Make batches of `columns.RETRIEVED` of the answers of remote retrievers.

    They are grouped by bucket next, which keeps what fails later from asking for the answers again.

    Attributes:
        evaluation: how many results a query needs of each source, and what they must be like.
    """

    evaluation: Evaluation

    def expand(self, answers: beam.PCollection[Answer]) -> Any:  # a Collected; Beam warns of named results
        """Add the steps."""
        collect = beam.ParDo(CollectFn(self.evaluation)).with_output_types(SourceRows, failures=BucketFailures)
        outputs = answers | "Collect" >> collect.with_outputs(FAILURES, main="rankings")
        return Collected(outputs.rankings, outputs[FAILURES])


class CollectFn(beam.DoFn):
    """Collects rankings, some at a time."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    def start_bundle(self) -> None:
        """Nothing is there."""
        self._rows: defaultdict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)

    def process(self, element: Answer) -> Iterator[object]:
        """Add an answer for everyone who asked; yield what has become enough for a batch."""
        problem = unusable(element.value, element.service, self._evaluation)
        uncut = cannot_be_cut(element.value, element.service, self._evaluation) if problem is None else None
        top_k = self._evaluation.sources[element.service].top_k
        for bucket, query_id in element.askers:
            key = (bucket, element.service)
            if (wrong := problem or uncut) is not None:
                count(Counter.FAILURES, 1)
                failure = Failure(STAGE, FailureKind.MALFORMED, query_id, 1, wrong, only_thresholds=problem is None)
                yield beam.pvalue.TaggedOutput(FAILURES, (bucket, (element.service, failure)))
            if problem is not None:
                continue
            self._rows[key].append(row_of(query_id, element.value, top_k))
            if len(self._rows[key]) >= _ROWS_AT_ONCE:
                yield _batch(key, self._rows.pop(key))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Yield what is left."""
        for key, rows in self._rows.items():
            yield GlobalWindows.windowed_value(_batch(key, rows))


def unusable(ranking: Ranking, source: int, evaluation: Evaluation) -> str | None:
    """Why an answer cannot be scored; None when it can.

    Args:
        ranking: the answer.
        source: position of the source that gave it.
        evaluation: what its configurations need.
    """
    wanted = evaluation.sources[source]
    doc_ids = ranking.doc_ids[: wanted.top_k]
    if wanted.refuse_repeats and len(set(doc_ids)) < len(doc_ids):
        again = next(name for place, name in enumerate(doc_ids) if name in doc_ids[:place])
        return (
            f"{again!r} stands twice in the answer; a chunk must not (dataset.unit: document lets its best rank count)"
        )
    return None


def cannot_be_cut(ranking: Ranking, source: int, evaluation: Evaluation) -> str | None:
    """Why an answer is of no use to the configurations with a distance threshold; None where it is, or there are none.

    Args:
        ranking: the answer.
        source: position of the source that gave it.
        evaluation: what its configurations need.
    """
    is_cut = any(each.source == source and each.distance is not None for each in evaluation.configurations)
    if is_cut and any(map(math.isnan, ranking.scores[: evaluation.sources[source].top_k])):
        return "a document of the answer has no score, so nobody knows whether it is nearer than the threshold"
    return None


def failure_of(failed: FailedCall) -> BucketFailures:
    """Why a query has no ranking, as scoring wants it."""
    return failed.bucket, (failed.service, failed.failure)


def _batch(key: tuple[int, int], rows: list[dict[str, Any]]) -> SourceRows:
    bucket, source = key
    return bucket, (source, pa.RecordBatch.from_pylist(rows, schema=columns.RETRIEVED))
