"""Results of many queries, which are read in parts."""

import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory
from rankbeam.transforms.clients.storage import parquet
from rankbeam.transforms.records import tables

QUERIES = 20_000


@pytest.mark.long
def test_the_queries_of_a_configuration_are_sorted_and_never_all_in_memory_as_python_objects() -> None:
    ids = [f"q{number * 7_919 % QUERIES:05}" for number in range(QUERIES)]  # 7,919 is prime
    unset = {"status": None, "reason": None, "tie_lowest": None, "tie_highest": None}
    metrics = pa.array([[{"metric": name, "value": 0.5, **unset} for name in ("AP", "RR", "P@5", "R@5")]])
    columns = {
        "config_id": pa.array([f"c{place % 2}" for place in range(2 * QUERIES)]),
        "query_id": pa.array([name for name in ids for _ in range(2)]),
        "status": pa.array(["ok"] * 2 * QUERIES),
        "metrics": metrics.take(pa.array([0] * 2 * QUERIES)),
    }
    results = Results("", "run", InMemory({"query_metrics": pa.table(columns)}))
    tracemalloc.start()
    try:
        names = [row["query_id"] for row in results.query_metrics("c1")]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert names == sorted(ids)
    assert peak < QUERIES * 1_000


def test_tables_are_read_by_row_groups_whose_bytes_are_bounded(tmp_path: Path) -> None:
    folder = Path(parquet.run_folder(str(tmp_path), "texts", "run"))
    schema = tables.TABLES["texts"]
    part = parquet.Part(str(folder), schema)
    for number in range(6):
        row = {"text_hash": str(number), "text": str(number) * (20 << 20)}
        common = {"run_id": "run", "experiment": "e", "started_at": datetime.now(UTC)}
        part.write(pa.Table.from_pylist([dict.fromkeys(schema.names) | common | row], schema))
    parquet.put_in_place(str(folder), [part.close()], schema)
    results = Results(str(tmp_path), "run")
    assert max(batch.nbytes for batch in results.batches("texts", ["text_hash", "text"])) < 45 << 20
    assert [row["text"][0] for row in results.stream("texts", ["text"])] == list("012345")
