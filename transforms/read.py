"""Read queries, judgements and runs, and group the rows of each query in one bucket.

A bucket is a hash of the query's id, so rows in any order, from any number of files, end up in the same bucket.
Elements are Arrow batches: one element per row would cost Beam more than all other work.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from rankbeam.transforms.clients.bigquery.read_source import is_table, shown
from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.formats import early, overlap, rows, sources, tables, texts
from rankbeam.transforms.clients.formats.evidence import read_evidence, refuse_misquoted
from rankbeam.transforms.clients.formats.judged import Conflict, judge
from rankbeam.transforms.clients.formats.pieces import Piece, PieceReader, pieces_of
from rankbeam.transforms.clients.formats.references import read_references, referenced
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import Bucketed, SourceRows
from rankbeam.transforms.clients.workers import Workers
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import offsets_of, stable_order
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.dataset import DatasetSummary, References
from rankbeam.transforms.records.rankings.retrieved import by_query

_ROWS_AT_ONCE, _BYTES_AT_ONCE = 1 << 19, 32 << 20
_BUCKETS_AT_ONCE, _MOST_AT_ONCE = 512, 4
"""Bytes divided at once: each bucket gets a piece of every part, and small pieces have more overhead than data."""

batches.register()


class Dataset(NamedTuple):
    """What `ReadDataset` returns."""

    judged: beam.PCollection[Bucketed]
    """Per bucket one batch of `columns.JUDGED_QUERIES`."""
    summary: beam.PCollection[DatasetSummary]
    """One element. As a side input it lets a stage begin only after the whole dataset is checked."""


@dataclass
class ReadDataset(beam.PTransform):
    """Read judgements, and queries where there are any, and join them.

    Attributes:
        qrels: path or pattern of the judgements, or a table of BigQuery.
        queries: the same of the queries; None takes the judged ones, without text.
        buckets: the number of parts that the queries are divided into.
        slices: attributes that the queries must have.
        highest: the highest allowed grade, and the metric that sets it.
        compared: role and path of the files that must share queries, or documents, with the judgements.
        references: the place of reference answers; None where there are none.
        everyone: queries without judgements are evaluated, too.
        spans: the judgements are evidence spans.
        quoted: the corpus whose text the evidence quotes; None where there is none to compare it with.
    """

    qrels: str | None
    queries: str | None
    buckets: int
    slices: tuple[str, ...] = ()
    highest: tuple[float, str] = (math.inf, "")
    compared: tuple[tuple[str, str], ...] = ()
    references: References | None = None
    everyone: bool = False
    spans: bool = False
    quoted: str | None = None

    def expand(self, pbegin: beam.pvalue.PBegin) -> Any:  # a Dataset; Beam warns of named results
        """Add the steps."""
        parts = {name: pbegin | f"Read{name.capitalize()}" >> reading for name, reading in self._files()}
        joined = (
            parts
            | "GroupByBucket" >> beam.CoGroupByKey()
            | "JudgeQueries"
            >> beam.ParDo(JudgeQueriesFn(self))
            .with_output_types(Bucketed, summary=DatasetSummary)
            .with_outputs("summary", main="judged")
        )
        summary = (
            joined.summary
            | "Summarise" >> beam.CombineGlobally(MergeSummariesFn()).without_defaults()
            | "Check"
            >> beam.Map(checked, self._named(self.queries), self._named(self.qrels), self.slices, self.references)
        )
        if self.qrels is not None and self.spans:
            summary = summary | "Quotes" >> beam.Map(quoting, self.qrels, self.quoted)
        elif self.qrels is not None:
            summary = summary | "Compare" >> beam.Map(compared, self.qrels, self.compared)
        return Dataset(joined.judged, summary)

    def _files(self) -> Iterator[tuple[str, "ReadFiles"]]:
        if self.qrels is not None:
            role = "evidence" if self.spans else "qrels"
            in_pieces = None if self.spans else rows.read_qrels_piece
            yield "qrels", ReadFiles(self.qrels, role, self.read_judgements, columns.QRELS, self.buckets, in_pieces)
        if self.queries is not None:
            yield "queries", ReadFiles(self.queries, "queries", texts.read_queries, columns.QUERIES, self.buckets)
        if self.references is not None and self.references.path is not None:
            path = self.references.path
            yield "references", ReadFiles(path, "answers", read_references, columns.REFERENCES, self.buckets)

    @property
    def read_judgements(self) -> Callable[[str], Iterator[pa.RecordBatch]]:
        """The reader of one file of judgements."""
        return read_evidence if self.spans else rows.read_qrels

    @staticmethod
    def _named(path: str | None) -> str | None:
        return None if path is None else shown(path)


@dataclass
class ReadRun(beam.PTransform):
    """Read the rows of a run into buckets, marked with their source.

    Attributes:
        path: path or pattern of the run, or a table of BigQuery.
        source: position of the source.
        buckets: as for the dataset.
    """

    path: str
    source: int
    buckets: int

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[SourceRows]:
        """Add the steps."""
        return (
            pbegin
            | "ReadRows"
            >> ReadFiles(self.path, "run", rows.read_run, columns.RANKINGS, self.buckets, rows.read_run_piece)
            | "MarkSource" >> beam.Map(mark, self.source).with_output_types(SourceRows)
        )


@dataclass
class ReadFiles(beam.PTransform):
    """Read all files of a pattern, or all streams of a table, and divide the rows by bucket.

    Attributes:
        pattern: of the files, or the table.
        role: of the input.
        reader: yields the rows of one file.
        schema: of the rows, without their lines.
        buckets: into how many parts they are divided.
        in_pieces: yields the rows of a piece of a file; None where a file is one piece, however large it is.
    """

    pattern: str
    role: str
    reader: Callable[[str], Iterator[pa.RecordBatch]]
    schema: pa.Schema
    buckets: int
    in_pieces: PieceReader | None = None

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[Bucketed]:
        """Add the steps."""
        if is_table(self.pattern):
            table = pbegin | "Table" >> beam.Create(sources.expand(self.pattern), reshuffle=False)
            streams = table | "OpenStreams" >> beam.FlatMap(tables.streams, self.role).with_output_types(str)
            found = streams | "SpreadStreams" >> beam.Reshuffle()  # a worker that retries keeps the session
        elif self.in_pieces is None:
            paths = sources.expand(self.pattern)
            found = pbegin | "Files" >> beam.Create(paths, reshuffle=len(paths) > 1)
        else:
            is_begun = early.is_begun((self.role, self.pattern))  # then a thread reads the whole file already
            pieces = [Piece(self.pattern)] if is_begun else pieces_of(self.pattern, self.role)
            found = pbegin | "Pieces" >> beam.Create(pieces, reshuffle=len(pieces) > 1)
            return found | "Read" >> beam.ParDo(ReadFn(self.in_pieces, self.schema, self.buckets))
        return found | "Read" >> beam.ParDo(ReadFn(self.reader, self.schema, self.buckets))


class ReadFn(beam.DoFn):
    """Reads a file, a piece of one, or a stream of a table, in batches."""

    def __init__(self, reader: Callable[[Any], Iterator[pa.RecordBatch]], schema: pa.Schema, buckets: int) -> None:
        self._reader, self._buckets = reader, buckets
        self._empty = pa.RecordBatch.from_pylist([], schema)

    def process(self, element: str | Piece) -> Iterator[Bucketed]:
        """Yield the file's rows by bucket, a large part of it at a time."""
        workers: Workers[list[Bucketed]] = Workers()
        part = None
        for part in parts_of(self._reader(element), self._buckets):
            count(Counter.ROWS_READ, part.num_rows)
            yield from chain.from_iterable(workers.submit(self._divide, part))
        yield from chain.from_iterable(workers.finish())
        if part is None:  # a file without rows is recorded, so that missing data are reported
            yield 0, self._empty

    def _divide(self, part: pa.RecordBatch) -> list[Bucketed]:
        is_run = part.schema.equals(columns.RUN)
        return list(divide(by_query(part) if is_run else part, self._buckets))


class JudgeQueriesFn(beam.DoFn):
    """Joins the queries and the judgements of buckets, a few at once."""

    def __init__(self, dataset: ReadDataset) -> None:
        self._dataset = dataset

    def start_bundle(self) -> None:
        """Prepare the joins."""
        self._workers: Workers[tuple[int, pa.RecordBatch, DatasetSummary]] = Workers()

    def process(self, element: tuple[int, dict[str, Iterable[pa.RecordBatch]]]) -> Iterator[object]:
        """Begin to join a bucket; yield an earlier bucket's judged queries, if any, and its part of the summary."""
        bucket, parts = element
        given = {name: list(batches_given) for name, batches_given in parts.items()}
        for done in self._workers.submit(self._judge, bucket, given):
            yield from self._outputs(*done)

    def finish_bundle(self) -> Iterator[object]:
        """Yield the remaining buckets."""
        for output in chain.from_iterable(self._outputs(*done) for done in self._workers.finish()):
            if isinstance(output, beam.pvalue.TaggedOutput):
                yield beam.pvalue.TaggedOutput(output.tag, GlobalWindows.windowed_value(output.value))
            else:
                yield GlobalWindows.windowed_value(output)

    def _judge(self, bucket: int, given: dict[str, list[pa.RecordBatch]]) -> tuple[int, pa.RecordBatch, DatasetSummary]:
        dataset = self._dataset
        try:
            asked, summary = judge(
                given.get("queries"), given.get("qrels", ()), dataset.highest, everyone=dataset.everyone
            )
            if dataset.references is not None:
                asked, summary = referenced(dataset.references, asked, given, summary)
        except Conflict as conflict:
            raise conflict.located(dataset.queries, dataset.qrels or "", dataset.read_judgements) from None
        return bucket, asked, summary

    def _outputs(self, bucket: int, judged: pa.RecordBatch, summary: DatasetSummary) -> Iterator[object]:
        count(Counter.JUDGED_QUERIES, judged.num_rows)
        yield beam.pvalue.TaggedOutput("summary", summary)
        if judged.num_rows:
            yield bucket, judged


class MergeSummariesFn(beam.CombineFn):
    """Forwards to `DatasetSummary`."""

    def create_accumulator(self) -> DatasetSummary:
        """Nothing read."""
        return DatasetSummary()

    def add_input(self, accumulator: DatasetSummary, element: DatasetSummary) -> DatasetSummary:
        """Merge one part."""
        return accumulator.merge(element)

    def merge_accumulators(self, accumulators: Iterable[DatasetSummary]) -> DatasetSummary:
        """Merge several."""
        merged = DatasetSummary()
        for accumulator in accumulators:
            merged = merged.merge(accumulator)
        return merged

    def extract_output(self, accumulator: DatasetSummary) -> DatasetSummary:
        """The summary itself."""
        return accumulator


def checked(
    summary: DatasetSummary,
    queries: str | None,
    qrels: str | None,
    slices: tuple[str, ...],
    references: References | None = None,
) -> DatasetSummary:
    """The summary of a dataset that can be evaluated.

    Raises:
        InputError: it cannot be evaluated.
    """
    summary.check(queries, qrels, slices, references)
    return summary


def compared(summary: DatasetSummary, qrels: str, others: tuple[tuple[str, str], ...]) -> DatasetSummary:
    """The summary of a dataset whose judgements share ids with other files.

    Raises:
        InputError: they share none.
    """
    overlap.refuse_disjoint(qrels, others)
    return summary


def quoting(summary: DatasetSummary, evidence: str, corpus: str | None) -> DatasetSummary:
    """The summary of a dataset whose evidence quotes its corpus.

    Raises:
        InputError: a quote is not the text of its span.
    """
    if corpus is not None:
        refuse_misquoted(evidence, corpus)
    return summary


def mark(element: Bucketed, source: int) -> SourceRows:
    """Label the rows of a bucket with their source."""
    bucket, batch = element
    return bucket, (source, batch)


def parts_of(given: Iterable[pa.RecordBatch], buckets: int) -> Iterator[pa.RecordBatch]:
    """Combine batches, without their line numbers, into larger ones.

    Args:
        given: batches with line numbers.
        buckets: into how many each is divided; for many of them batches are up to four times as large, since an element
            of few rows costs more than its rows.
    """
    times = max(1, min(_MOST_AT_ONCE, buckets // _BUCKETS_AT_ONCE))
    pending: list[pa.RecordBatch] = []
    for batch in given:
        pending.append(batch.drop_columns(["line"]))
        rows_found, size = sum(each.num_rows for each in pending), sum(each.nbytes for each in pending)
        if rows_found >= times * _ROWS_AT_ONCE or size >= times * _BYTES_AT_ONCE:
            yield pa.concat_batches(pending) if len(pending) > 1 else pending[0]
            pending = []
    if pending:
        yield pa.concat_batches(pending)


def divide(part: pa.RecordBatch, buckets: int) -> Iterator[Bucketed]:
    """Divide rows by the bucket of their query.

    Args:
        part: has a column query_id.
        buckets: how many there are.

    Yields:
        The bucket and its rows, in their order, for each bucket that has any.
    """
    bucket = hashing.buckets(part.column("query_id"), buckets)
    offsets = offsets_of(np.sort(bucket), buckets)
    ordered = part.take(pa.array(stable_order(bucket, buckets)))
    for found in np.flatnonzero(np.diff(offsets)).tolist():
        rows_found = ordered.slice(offsets[found], offsets[found + 1] - offsets[found])
        yield (
            found,
            rows_found if isinstance(rows_found, pa.RecordBatch) else rows_found.combine_chunks().to_batches()[0],
        )
