"""Read files in pieces, and divide their rows by bucket."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa

from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.formats import read_ahead, rows, sources
from rankbeam.transforms.clients.formats.bucketing import in_parts
from rankbeam.transforms.clients.formats.pieces import Piece, PieceReader, pieces_of
from rankbeam.transforms.clients.formats.syntax import tables
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import Bucketed, SourceRows
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.counters import Counter

batches.register()


@dataclass
class ReadRun(beam.PTransform):
    """Read the rows of a run into buckets, marked with their source."""

    path: str
    source: int
    buckets: int

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[SourceRows]:
        return (
            pbegin
            | "ReadRows"
            >> ReadFiles(self.path, "run", rows.read_run, columns.RANKINGS, self.buckets, rows.read_run_piece)
            | "MarkSource" >> beam.Map(mark, self.source).with_output_types(SourceRows)
        )


@dataclass
class ReadFiles(beam.PTransform):
    """Read all files of a pattern, or all streams of a table, and divide the rows by bucket."""

    pattern: str
    role: str
    reader: Callable[[str], Iterator[pa.RecordBatch]]
    schema: pa.Schema
    buckets: int
    in_pieces: PieceReader | None = None

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[Bucketed]:
        if is_table(self.pattern):
            table = pbegin | "Table" >> beam.Create(sources.expand(self.pattern), reshuffle=False)
            streams = table | "OpenStreams" >> beam.FlatMap(tables.streams, self.role).with_output_types(str)
            sessions = streams | "SpreadStreams" >> beam.Reshuffle()  # a worker that retries keeps the session
        elif self.in_pieces is None:
            paths = sources.expand(self.pattern)
            sessions = pbegin | "Files" >> beam.Create(paths, reshuffle=len(paths) > 1)
        else:
            is_begun = read_ahead.is_begun((self.role, self.pattern))  # another process already reads the whole file
            pieces = [Piece(self.pattern)] if is_begun else pieces_of(self.pattern, self.role)
            sessions = pbegin | "Pieces" >> beam.Create(pieces, reshuffle=len(pieces) > 1)
            return sessions | "Read" >> beam.ParDo(ReadFn(self.in_pieces, self.schema, self.buckets, self.role))
        return sessions | "Read" >> beam.ParDo(ReadFn(self.reader, self.schema, self.buckets))


class ReadFn(beam.DoFn):
    """Reads a file, a piece of a file, or a stream of a table, in parts, and divides the parts."""

    def __init__(
        self, reader: Callable[[Any], Iterator[pa.RecordBatch]], schema: pa.Schema, buckets: int, role: str = ""
    ) -> None:
        self._reader, self._buckets, self._role = reader, buckets, role
        self._empty = pa.RecordBatch.from_pylist([], schema)

    def process(self, element: str | Piece) -> Iterator[Bucketed]:  # some as `SpilledBatch`, for the next stage
        begun = read_ahead.take_parts((self._role, element.path)) if isinstance(element, Piece) else None
        part = None
        for part in begun or in_parts(self._reader(element), self._buckets):
            count(Counter.ROWS_READ, part.rows)
            yield from part.pieces
        if part is None:  # a file without rows is recorded, so that missing data are reported
            yield 0, self._empty


def mark(element: Bucketed, source: int) -> SourceRows:
    bucket, batch = element
    return bucket, (source, batch)
