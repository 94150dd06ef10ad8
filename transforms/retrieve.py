"""Ask the retrievers that answer in process.

All questions to one retriever form one element after a GroupByKey, so its index is opened once, on one worker,
and several retrievers are asked in parallel.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa

from transforms.clients import batches
from transforms.clients.batches import Bucketed, SourceRows
from transforms.clients.retrievers import Retriever, RetrieverParameters
from transforms.records import columns
from transforms.records.counters import Counter, count
from transforms.records.dataset import DatasetSummary
from transforms.records.errors import CallError, InputError
from transforms.records.evaluation import Query, Ranking
from transforms.records.failures import Failure

BucketFailures = tuple[int, tuple[int, Failure]]

FAILURES, WARNINGS = "failures", "warnings"
STAGE = "retrieve"

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
    rows: dict[str, list[Any]] = {name: [] for name in columns.RETRIEVED.names}
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
        texts = ranking.texts or (None,) * len(ranking.doc_ids)
        documents = zip(ranking.doc_ids, ranking.scores, texts, strict=True)
        rows["query_id"].append(query_id)
        rows["documents"].append(
            [{"doc_id": name, "score": score, "text": said} for name, score, said in islice(documents, top_k)]
        )
    return pa.RecordBatch.from_pydict(rows, schema=columns.RETRIEVED), failures
