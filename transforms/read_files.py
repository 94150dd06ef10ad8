"""Read files in pieces, and divide their rows by bucket."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa

from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.formats import read_ahead, rows
from rankbeam.transforms.clients.formats.bucketing import in_parts
from rankbeam.transforms.clients.formats.pieces import Piece, Reader, pieces_of, rows_of
from rankbeam.transforms.clients.formats.syntax import tables
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import Bucketed, SourceRows
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.counters import Counter

batches.register()


@dataclass
class ReadSources(beam.PTransform):
    """Read the files of several sources into buckets, as rows marked with their source.

    With a transform for each of a thousand sources, Beam's local runner needs memory for the square of their number.
    """

    paths: Mapping[int, str]
    readers: Mapping[int, Reader]
    role: str
    schema: pa.Schema
    buckets: int

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[SourceRows]:
        parts = [
            pbegin
            | f"ReadTable{source}" >> ReadFiles(path, self.role, self.readers[source], self.schema, self.buckets)
            | f"MarkSource{source}" >> beam.Map(mark, source).with_output_types(SourceRows)
            for source, path in self.paths.items()
            if is_table(path)
        ]
        files = [(source, path) for source, path in self.paths.items() if not is_table(path)]
        elements = [(source, piece) for source, path in files for piece in _pieces_of(path, self.role)]
        is_begun = any(read_ahead.is_begun((self.role, path)) for _, path in files)  # and in this order
        read = ReadSourcesFn(self.readers, self.schema, self.buckets, self.role)
        if elements:
            created = pbegin | "Files" >> beam.Create(elements, reshuffle=len(elements) > 1 and not is_begun)
            parts.append(created | "Read" >> beam.ParDo(read).with_output_types(SourceRows))
        return parts | "EverySource" >> beam.Flatten()


def read_runs(paths: Mapping[int, str], buckets: int) -> ReadSources:
    """Read the rows of runs, by source."""
    return ReadSources(paths, dict.fromkeys(paths, rows.read_run), "run", columns.RANKINGS, buckets)


@dataclass
class ReadFiles(beam.PTransform):
    """Read all files of a pattern, or all streams of a table, and divide the rows by bucket."""

    pattern: str
    role: str
    reader: Reader
    schema: pa.Schema
    buckets: int

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection[Bucketed]:
        if is_table(self.pattern):
            table = pbegin | "Table" >> beam.Create([self.pattern], reshuffle=False)
            streams = table | "OpenStreams" >> beam.FlatMap(_streams, self.role).with_output_types(Piece)
            created = streams | "SpreadStreams" >> beam.Reshuffle()  # a worker that retries keeps the session
        else:
            pieces = _pieces_of(self.pattern, self.role)
            created = pbegin | "Pieces" >> beam.Create(pieces, reshuffle=len(pieces) > 1)
        return created | "Read" >> beam.ParDo(ReadFn(self.reader, self.schema, self.buckets, self.role))


def _pieces_of(pattern: str, role: str) -> list[Piece]:
    """The pieces of a pattern's files; the whole file if another process already reads it."""
    return [Piece(pattern)] if read_ahead.is_begun((role, pattern)) else pieces_of(pattern, role)


def _streams(table: str, role: str) -> Iterator[Piece]:
    yield from map(Piece, tables.streams(table, role))


class ReadFn(beam.DoFn):
    """Reads pieces in parts, and divides the parts."""

    def __init__(self, reader: Reader, schema: pa.Schema, buckets: int, role: str) -> None:
        self._reader, self._buckets, self._role = reader, buckets, role
        self._empty = pa.RecordBatch.from_pylist([], schema)

    def process(self, element: Piece) -> Iterator[Bucketed]:  # some as `SpilledBatch`, for the next stage
        begun = read_ahead.take_parts((self._role, element.path))
        part = None
        for part in begun or in_parts(rows_of(element, self._reader), self._buckets):
            count(Counter.ROWS_READ, part.rows)
            yield from part.pieces
        if part is None:  # a file without rows is recorded, so that missing data are reported
            yield 0, self._empty


class ReadSourcesFn(beam.DoFn):
    """Reads files or pieces of several sources."""

    def __init__(self, readers: Mapping[int, Reader], schema: pa.Schema, buckets: int, role: str) -> None:
        self._readers, self._parameters = readers, (schema, buckets, role)

    def process(self, element: tuple[int, Piece]) -> Iterator[SourceRows]:
        source, piece = element
        for bucketed in ReadFn(self._readers[source], *self._parameters).process(piece):
            yield mark(bucketed, source)


def mark(element: Bucketed, source: int) -> SourceRows:
    bucket, batch = element
    return bucket, (source, batch)
