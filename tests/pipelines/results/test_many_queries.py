"""Results of many queries, which are read in parts."""

import tracemalloc

import pyarrow as pa

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory

QUERIES = 20_000


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
