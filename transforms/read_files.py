"""Read files in pieces, and divide their rows by bucket."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from rankbeam.transforms.clients.bigquery.read_source import is_table
from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.formats import early, rows, sources, tables
from rankbeam.transforms.clients.formats.pieces import Piece, PieceReader, pieces_of
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import Bucketed, SourceRows
from rankbeam.transforms.clients.workers import Workers
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import offsets_of, stable_order
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.rankings.retrieved import by_query

_ROWS_AT_ONCE, _BYTES_AT_ONCE = 1 << 19, 32 << 20
_BUCKETS_AT_ONCE, _MOST_AT_ONCE = 512, 4
"""Bytes divided at once: each bucket gets a piece of every part, and small pieces have more overhead than data."""

batches.register()


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
