"""Small tables with an outage, for the queries of dashboards."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
VALUES = {"old": (0.5, 0.9), "good": (0.4, 0.8), "down": None, "elsewhere": (0.3, 0.7)}
"""The values of the two queries that have any, by run; the last run of the first experiment has none."""

Rows = list[dict[str, Any]]


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    """Add rows, with null for the columns that they lack."""
    names = list(rows[0])
    schema = pa.schema([tables.TABLES[table].field(name).with_nullable(True) for name in names])
    connection.register("arrow", pa.Table.from_pylist(list(rows), schema))
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM arrow")


def common(run_id: str, day: int, experiment: str = "e") -> dict[str, Any]:
    return {"run_id": run_id, "experiment": experiment, "started_at": FIRST + timedelta(days=day)}


def empty_tables() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, schema in tables.TABLES.items():
        connection.register("arrow", schema.empty_table())
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
    connection.execute(views.for_duckdb())
    return connection


_empty_tables = lru_cache(1)(empty_tables)


@pytest.fixture
def small_tables() -> Iterator[duckdb.DuckDBPyConnection]:
    """Empty tables and their views; what a test changes is rolled back."""
    connection = _empty_tables()
    connection.begin()
    yield connection
    connection.rollback()


def scored(config_id: str, values: tuple[float, float] | None, shift: float) -> Iterator[dict[str, Any]]:
    """Three queries of a configuration: one loses by the shift, one wins, and the call of the last one failed."""
    scores = [None, None, None] if values is None else [values[0] + shift, values[1] - shift, None]
    for place, score in enumerate(scores):
        yield {
            "config_id": config_id, "query_id": f"q{place}", "status": "failed" if score is None else "ok",
            "slices": [{"name": "language", "value": "de"}],
            "metrics": [] if score is None else [{"metric": "RR", "value": score}],
        }  # fmt: skip


@pytest.fixture
def outage(small_tables: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Three runs of one experiment, in the last of which every call failed, and one of another."""
    connection = small_tables
    for day, (run_id, values) in enumerate(VALUES.items()):
        own = common(run_id, day, "other" if run_id == "elsewhere" else "e")
        run = own | {"dataset_fingerprint": "d", "calls": 3, "ledger_hits": 0, "failures": 1, "warnings": []}
        insert(connection, "runs", [run])
        pair = [
            own | {"config_id": config_id, "name": config_id, "dialect": "rankbeam", "parts": []}
            for config_id in ("base", "new")
        ]
        insert(connection, "configurations", pair)
        means = [
            own | {"config_id": config_id, "slice": name, "metric": "RR", "queries": 2 if values else 0}
            | {"mean": sum(values) / 2 if values else None, "empty": 0, "failed": 1, "missing": 0}
            for config_id in ("base", "new") for name in ("all", "language=de")
        ]  # fmt: skip
        insert(connection, "configuration_metrics", means)
        insert(
            connection, "comparisons", [own | {"config_id": "new", "baseline": "base", "slice": "all", "metric": "RR"}]
        )
        failed = {"query_id": "q2", "stage": "retrieve", "kind": "quota", "attempts": 3, "message": "enough"}
        insert(connection, "failures", [own | {"config_id": config_id} | failed for config_id in ("base", "new")])
        documents = [{"rank": 1, "doc_id": "d", "score": 1.0, "grade": 1.0, "text": None}]
        insert(connection, "rankings", [own | {"config_id": "new", "query_id": "q0", "documents": documents}])
        insert(connection, "query_metrics", [
            own | row for config_id, shift in (("base", 0.0), ("new", -0.1)) for row in scored(config_id, values, shift)
        ])  # fmt: skip
    return connection


def query_rows(connection: duckdb.DuckDBPyConnection, query: str) -> Rows:
    cursor = connection.execute(sqlglot.transpile(query, read="bigquery", write="duckdb")[0])
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
