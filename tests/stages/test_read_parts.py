"""How many rows are divided among the buckets at once: more where these are many, so that elements have enough rows."""

import numpy as np
import pyarrow as pa
import pytest

from rankbeam.transforms.read_files import parts_of

ROWS, BATCHES = 1 << 18, 20


@pytest.mark.parametrize(("buckets", "rows"), [(4, 1 << 19), (1023, 1 << 19), (1024, 1 << 20), (1 << 20, 1 << 21)])
def test_parts_grow_with_the_number_of_buckets(buckets: int, rows: int) -> None:
    column = pa.array(np.zeros(ROWS, np.int8))
    batches = [pa.RecordBatch.from_arrays([column, column], ["x", "line"])] * BATCHES
    parts = [part.num_rows for part in parts_of(batches, buckets)]
    assert sum(parts) == ROWS * BATCHES
    assert set(parts[:-1]) == {rows}
    assert parts[-1] <= rows
