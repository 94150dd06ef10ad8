"""Dashboards of runs with outages, over time, and for whom: their queries run over small tables."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from support.data import REPOSITORY
from support.looker import Project

from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.failures import FailureKind

PROJECT = Project(REPOSITORY / "deploy" / "looker")
ELEMENTS = {
    (name, element["name"]): element
    for name, dashboard in PROJECT.dashboards.items()
    for element in dashboard["elements"]
}
OF_RUNS = {key: element for key, element in ELEMENTS.items() if "Run" in element["listen"]}
OVER_TIME = {key: element for key, element in ELEMENTS.items() if "Started" in element["listen"]}
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
VALUES = {"old": (0.5, 0.9), "good": (0.4, 0.8), "down": None, "elsewhere": (0.3, 0.7)}
"""Of the two queries that have any, by run; the last run of the first experiment has none."""

Rows = list[dict[str, Any]]


def insert(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    """Add rows, with null for the columns that they lack."""
    names = list(rows[0])
    schema = pa.schema([tables.TABLES[table].field(name).with_nullable(True) for name in names])
    connection.register("arrow", pa.Table.from_pylist(list(rows), schema))
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM arrow")


def common(run_id: str, day: int, experiment: str = "e") -> dict[str, Any]:
    return {"run_id": run_id, "experiment": experiment, "started_at": FIRST + timedelta(days=day)}


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, schema in tables.TABLES.items():
            connection.register("arrow", schema.empty_table())
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
        connection.execute(views.for_duckdb())
        yield connection


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
def outage(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Three runs of one experiment, in the last of which every call failed, and one of another."""
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


@pytest.mark.parametrize("explore", sorted({element["explore"] for element in OF_RUNS.values()}))
def test_an_explore_shows_the_latest_run_the_last_good_one_or_any(
    outage: duckdb.DuckDBPyConnection, explore: str
) -> None:
    def runs(**chosen: str) -> set[str]:
        filters = {f"{explore}.experiment": "e"} | {f"run_choices.{name}": text for name, text in chosen.items()}
        return {
            row[f"{explore}__run_id"]
            for row in query_rows(outage, PROJECT.sql(explore, [f"{explore}.run_id"], filters))
        }

    assert runs() == runs(run="latest") == {"down"}
    assert runs(run="last good") == {"good"}
    assert [runs(run=choice) for choice in VALUES] == [{"old"}, {"good"}, {"down"}, set()]


def test_every_element_shows_a_chosen_run_or_a_chosen_time() -> None:
    assert ELEMENTS.keys() == OF_RUNS.keys() | OVER_TIME.keys()
    assert not OF_RUNS.keys() & OVER_TIME.keys()
    for dashboard in PROJECT.dashboards.values():
        (run,) = [item for item in dashboard["filters"] if item["name"] == "Run"]
        assert (run["default_value"], run["required"]) == ("latest", True)


@pytest.mark.parametrize("key", OF_RUNS, ids="-".join)
def test_the_last_good_run_stays_within_reach(outage: duckdb.DuckDBPyConnection, key: tuple[str, str]) -> None:
    query = "q2" if key == ("query", "failures") else "q0"
    filters = {"Experiment": "e", "Metric": "RR", "Query": query, "Run": "last good"}
    assert query_rows(outage, PROJECT.of_element(OF_RUNS[key], filters))


def test_queries_that_lose_most_have_lost(outage: duckdb.DuckDBPyConnection) -> None:
    element = ELEMENTS["leaderboard", "queries"]
    filters = {"Experiment": "e", "Metric": "RR"}
    (row,) = query_rows(outage, PROJECT.of_element(element, filters | {"Run": "last good"}))
    assert (row["side_by_side__query_id"], row["side_by_side__difference"]) == ("q0", pytest.approx(-0.1))
    assert query_rows(outage, PROJECT.of_element(element, filters | {"Run": "latest"})) == []


@pytest.mark.parametrize("key", [key for key in OVER_TIME if key[0] == "leaderboard"], ids="-".join)
def test_the_newest_rows_are_kept(connection: duckdb.DuckDBPyConnection, key: tuple[str, str]) -> None:
    days = 600
    own = [common(f"r{day}", day) for day in range(days)]
    insert(
        connection, "runs", [row | {"calls": 1, "dataset_fingerprint": f"d{day % 2}"} for day, row in enumerate(own)]
    )
    insert(connection, "configurations", [row | {"config_id": "c", "name": "c"} for row in own])
    insert(connection, "configuration_metrics", [
        row | {"config_id": "c", "slice": "all", "metric": "RR", "mean": 0.5, "queries": 1} for row in own
    ])  # fmt: skip
    element = ELEMENTS[key]
    rows = query_rows(connection, PROJECT.of_element(element, {"Experiment": "e", "Metric": "RR"}))
    (time,) = (name.replace(".", "__") for name in element["fields"] if ".started_" in name)
    newest = [FIRST + timedelta(days=days - 1 - place) for place in range(element["limit"])]
    assert [row[time] for row in rows] == newest


def test_every_dataset_has_a_line_of_its_own() -> None:
    element = ELEMENTS["leaderboard", "trend"]
    assert element["pivots"] == ["trend.configuration", "trend.dataset_fingerprint"]
    assert {*element["pivots"]} < {*element["fields"]}


def test_every_kind_of_failure_is_shown() -> None:
    shown = {name for name in ELEMENTS["leaderboard", "coverage"]["fields"] if name.startswith("coverage.")}
    assert shown >= {f"coverage.{kind.value}_count" for kind in FailureKind}
