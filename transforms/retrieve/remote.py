"""What remote retrievers are asked, and what becomes of their answers."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever
from rankbeam.transforms.clients.storage.batches import Bucketed, SourceRows
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.calls.call import Answer, Call, FailedCall
from rankbeam.transforms.records.calls.reach import Reach
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.evaluation import Evaluation
from rankbeam.transforms.records.failures import Failure, FailureKind
from rankbeam.transforms.records.queries import Query, Ranking
from rankbeam.transforms.retrieve.local import FAILURES, ROWS_AT_ONCE, STAGE, BucketFailures, cannot_be_cut, row_of


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
            if len(self._rows[key]) >= ROWS_AT_ONCE:
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


def failure_of(failed: FailedCall) -> BucketFailures:
    """Why a query has no ranking, as scoring wants it."""
    return failed.bucket, (failed.service, failed.failure)


def _batch(key: tuple[int, int], rows: list[dict[str, Any]]) -> SourceRows:
    bucket, source = key
    return bucket, (source, pa.RecordBatch.from_pylist(rows, schema=columns.RETRIEVED))
