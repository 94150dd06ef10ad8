"""Parquet files, opened by path."""

import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.storage.parquet import open_file

ROWS = pa.table({"doc_id": [f"d{row}" for row in range(50_000)]})


def test_pages_of_a_local_file_do_not_pass_through_python(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    pq.write_table(ROWS, path)
    with open_file(str(path)) as file:
        tracemalloc.start()
        try:
            rows = file.read(use_threads=False)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert rows.equals(ROWS)
    assert peak < path.stat().st_size / 10
