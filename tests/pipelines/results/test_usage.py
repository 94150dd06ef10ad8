"""Calls and costs of a configuration are divided by the queries that it was called for, with a value or without."""

import pyarrow as pa
import pytest
from support.judged import judged_run

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InMemory
from rankbeam.pipelines.results.usage import cost_of_1000_queries, queries_of
from rankbeam.transforms.records.scores.comparisons import metrics_table
from rankbeam.transforms.write.rows import configurations

RUN = judged_run(3, queries=30, replicates=20)
MEANS = metrics_table(RUN.estimates(), RUN.evaluation).to_pylist()


@pytest.mark.parametrize(
    ("column", "expected"), [("failed", 30), ("undefined", 30), ("missing", 30), ("not_asked", 18)]
)
def test_queries_without_a_value_were_called_for_unless_a_race_left_them_out(column: str, expected: int) -> None:
    counts = dict.fromkeys(("failed", "undefined", "missing", "not_asked"), 0) | {"queries": 18, column: 12}
    rows = [row | counts for row in MEANS]
    known = {"configurations": configurations(RUN.evaluation).to_pylist(), "configuration_metrics": rows}
    results = Results("", "run", InMemory({name: pa.Table.from_pylist(value) for name, value in known.items()}))
    assert queries_of(results) == {row["config_id"]: expected for row in known["configurations"]}


def test_the_cost_of_1000_queries_is_unknown_where_a_price_is() -> None:
    of = [{"config_id": name, "calls": 60, "cost": cost} for name, cost in (("a", 0.3), ("b", None))]
    usage = [{"stage": "retrieve", "pool": "http", "model": None, "configurations": of, "from_ledger": None}]
    assert cost_of_1000_queries(usage, {"a": 30, "b": 30}, "a") == pytest.approx(10.0)
    assert cost_of_1000_queries(usage, {"a": 30, "b": 30}, "b") is None


def test_the_cost_of_1000_queries_includes_answers_in_the_ledger() -> None:
    of = [{"config_id": name, "ledger_hits": 60, "cost": cost} for name, cost in (("a", 0.3), ("b", None))]
    usage = [{"stage": "retrieve", "pool": "http", "model": None, "configurations": [], "from_ledger": of}]
    assert cost_of_1000_queries(usage, {"a": 30, "b": 30}, "a") == pytest.approx(10.0)
    assert cost_of_1000_queries(usage, {"a": 30, "b": 30}, "b") is None
