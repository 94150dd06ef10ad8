"""Rows of a file are combined, and divided among the buckets, for the stages after reading."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankbeam.transforms.clients.formats import bucketing
from rankbeam.transforms.clients.storage import batches, spill
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.records import columns

ROWS, BATCHES = 1 << 18, 20
RUN = columns.with_line(columns.RUN)


def run_of(*rows: tuple[str, str, float]) -> pa.RecordBatch:
    query_ids, doc_ids, scores = zip(*rows, strict=True)
    return pa.record_batch([query_ids, doc_ids, scores, range(1, len(rows) + 1)], schema=RUN)


@pytest.mark.parametrize(
    ("buckets", "rows"), [(4, ROWS), (32, ROWS), (33, 2 * ROWS), (256, 1 << 21), (1 << 20, 1 << 21)]
)
def test_each_bucket_gets_enough_rows_of_a_part(buckets: int, rows: int) -> None:
    column = pa.array(np.zeros(ROWS, np.int8))
    batches = [pa.RecordBatch.from_arrays([column, column], ["x", "line"])] * BATCHES
    parts = list(bucketing.parts_of(batches, buckets))
    numbers = [number for number, _ in parts]
    assert numbers == [batch.num_rows for _, batch in parts]
    assert sum(numbers) == ROWS * BATCHES
    assert {*numbers[:-1]} == {rows}
    assert numbers[-1] <= rows


@pytest.mark.parametrize(("buckets", "together"), [(512, 4), (1024, 8), (1 << 20, 16)])
def test_wide_rows_make_smaller_parts(buckets: int, together: int) -> None:
    wide = pa.array(["x" * (8 << 20)])
    batches = [pa.RecordBatch.from_arrays([wide, pa.array([1])], ["x", "line"])] * 32
    assert [number for number, _ in bucketing.parts_of(batches, buckets)] == [together] * (32 // together)


def test_rows_of_a_run_are_counted_and_come_as_one_row_a_query() -> None:
    ((number, batch),) = bucketing.parts_of(
        [run_of(("q1", "a", 3.0), ("q2", "b", 2.0)), run_of(("q2", "c", 1.0))], 1024
    )
    assert number == 3
    lists = [(row["query_id"], [item["doc_id"] for item in row["documents"]]) for row in batch.to_pylist()]
    assert lists == [("q1", ["a"]), ("q2", ["b"]), ("q2", ["c"])]


def test_every_row_is_in_the_bucket_of_its_query() -> None:
    names = [f"q{number}" for number in range(100)]
    (part,) = bucketing.in_parts([run_of(*((name, f"d of {name}", 1.0) for name in names))], 7)
    pieces = dict(part.pieces)
    assert len(pieces) == len(part.pieces) == 7
    assert Counter(name for piece in pieces.values() for name in piece["query_id"].to_pylist()) == Counter(names)
    for bucket, piece in pieces.items():
        assert set(hashing.buckets(piece["query_id"], 7)) == {bucket}
        for row in piece.to_pylist():
            assert [item["doc_id"] for item in row["documents"]] == [f"d of {row['query_id']}"]


def test_a_file_without_rows_has_no_part() -> None:
    assert list(bucketing.in_parts([], 7)) == []


@pytest.mark.parametrize("rows", [1, 10_000])
def test_what_another_process_divided_is_what_it_was(rows: int) -> None:
    batches.register()
    source = run_of(*((f"q{number}", f"d{number}", 1.0) for number in range(rows)))
    expected: list[Any] = [
        piece.to_pylist() for _, piece in bucketing.divide(next(bucketing.parts_of([source], 2))[1], 2)
    ]
    with spill.spilling():
        (part,) = bucketing.in_parts([source], 2)
        assert [isinstance(piece, batches.SpilledBatch) for _, piece in part.pieces] == [rows > 1] * len(expected)
        received = bucketing.decode_part(bucketing.encode_part(part))
        assert received == part
        assert [_batch(piece).to_pylist() for _, piece in received.pieces] == expected


def _batch(piece: pa.RecordBatch | batches.SpilledBatch) -> pa.RecordBatch:
    return batches.decode_spilled(piece.place) if isinstance(piece, batches.SpilledBatch) else piece
