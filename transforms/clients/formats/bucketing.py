"""Divide the rows of files by the bucket of their query, for the stages after reading."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rankbeam.transforms.clients.storage.batches import SpilledBatch, spill_batch
from rankbeam.transforms.clients.workers import Workers, read_ahead
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import offsets_of, stable_order
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.rankings.retrieved import by_query

_ROWS, _BYTES = 1 << 13, 1 << 16  # size of a bucket's piece of a part; smaller pieces are mostly overhead
_MOST_BUCKETS = 1 << 8  # with more buckets, pieces are smaller: a part stays below two million rows
_LEAST_BYTES, _MOST_BYTES = 32 << 20, 128 << 20  # size of a part with too few rows
_SLICE_BYTES = 1 << 20  # Flink refuses an element that does not fit into a sort buffer of a few megabytes


@dataclass(frozen=True)
class DividedPart:
    """A part of a file, divided by bucket."""

    rows: int
    pieces: list[tuple[int, pa.RecordBatch | SpilledBatch]]


def parts_of(batches: Iterable[pa.RecordBatch], buckets: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Combine batches that are too small to be divided, each with the number of its rows."""
    enough_rows = _ROWS * min(buckets, _MOST_BUCKETS)
    enough_bytes = min(max(_LEAST_BYTES, _BYTES * buckets), _MOST_BYTES)
    rows, pending = 0, list[pa.RecordBatch]()
    for batch in batches:
        rows += batch.num_rows
        unnumbered = batch.drop_columns(["line"])
        pending.append(by_query(unnumbered) if unnumbered.schema.equals(columns.RUN) else unnumbered)
        if rows >= enough_rows or sum(part.nbytes for part in pending) >= enough_bytes:
            yield rows, _together(pending)
            rows, pending = 0, []
    if pending:
        yield rows, _together(pending)


def _together(pending: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches(pending) if len(pending) > 1 else pending[0]


def divide_part(rows: int, part: pa.RecordBatch, buckets: int) -> DividedPart:
    """Divide a part; large pieces are spilled if batches are, and sliced otherwise."""
    pieces = ((bucket, passed) for bucket, piece in divide(part, buckets) for passed in _passed_on(piece))
    return DividedPart(rows, list(pieces))


def _passed_on(piece: pa.RecordBatch) -> Iterator[pa.RecordBatch | SpilledBatch]:
    stored = spill_batch(piece)
    if isinstance(stored, SpilledBatch):
        yield stored
        return
    slices = max(1, min(piece.num_rows, piece.nbytes // _SLICE_BYTES))
    rows = -(-piece.num_rows // slices)
    for start in range(0, piece.num_rows, rows):
        yield piece.slice(start, rows)


def in_parts(batches: Iterable[pa.RecordBatch], buckets: int) -> Iterator[DividedPart]:
    """Divide a file's rows, one large part at a time, in separate threads."""
    workers: Workers[DividedPart] = Workers()
    for rows, part in read_ahead(parts_of(batches, buckets)):
        yield from workers.submit(divide_part, rows, part, buckets)
    yield from workers.finish()


def encode_part(part: DividedPart) -> tuple[int, list[tuple[int, Any]]]:
    """A divided part to send to another process, for `decode_part`: a spilled piece is sent as its place."""
    return part.rows, [
        (bucket, piece.place if isinstance(piece, SpilledBatch) else piece) for bucket, piece in part.pieces
    ]


def decode_part(message: tuple[int, list[tuple[int, Any]]]) -> DividedPart:
    rows, pieces = message
    return DividedPart(
        rows, [(bucket, SpilledBatch(piece) if isinstance(piece, bytes) else piece) for bucket, piece in pieces]
    )


def divide(part: pa.RecordBatch, buckets: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    bucket = hashing.buckets(part.column("query_id"), buckets)
    offsets = offsets_of(np.sort(bucket), buckets)
    ordered = part.take(pa.array(stable_order(bucket, buckets)))
    for number in np.flatnonzero(np.diff(offsets)).tolist():
        piece = ordered.slice(offsets[number], offsets[number + 1] - offsets[number])
        yield number, piece if isinstance(piece, pa.RecordBatch) else piece.combine_chunks().to_batches()[0]
