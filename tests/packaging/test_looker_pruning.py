"""Explores read the partitions of some days, and show what the views would show of these days alone."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp
from support.data import REPOSITORY
from support.looker import REFERENCE, Project
from support.outage import FIRST, Rows, query_rows
from support.pruning import HELD_DAYS, PARTITION_BYTES, scanned, scans

from rankbeam.transforms.records import tables

PROJECT = Project(REPOSITORY / "deploy" / "looker")
ELEMENTS = {
    f"{board}-{element['name']}": element
    for board, content in PROJECT.dashboards.items()
    for element in content["elements"]
}
NINE_DAYS = "started_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 9 DAY)"


def parsed(element: dict[str, Any], **filters: str) -> exp.Expression:
    return sqlglot.parse_one(PROJECT.of_element(element, filters), dialect="bigquery")


@pytest.mark.parametrize("name", ELEMENTS)
def test_a_tile_reads_the_partitions_of_the_last_90_days(name: str) -> None:
    read = scanned(parsed(ELEMENTS[name]))
    assert read
    times = Counter(table for _, table in scans(parsed(ELEMENTS[name])))
    whole = {table: count * HELD_DAYS * PARTITION_BYTES for table, count in times.items()}
    assert {table for table in read if read[table] == whole[table]} <= {"runs"}
    assert all(read[table] == whole[table] * 90 // HELD_DAYS for table in read if table != "runs")


def test_whoever_looks_says_how_many_days() -> None:
    element = ELEMENTS["query-documents"]
    fewer, more = (scanned(parsed(element, **{"Days back": days})) for days in ("30", "300"))
    assert 10 * fewer["rankings"] == more["rankings"]
    assert fewer["runs"] == more["runs"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM main.answers",
        "SELECT * FROM main.answers WHERE started_at >= (SELECT MAX(started_at) FROM main.runs)",
        f"SELECT * FROM main.answers WHERE {NINE_DAYS} OR query_id = 'q'",
        f"SELECT * FROM (SELECT * FROM main.answers) WHERE {NINE_DAYS}",
    ],
)
def test_what_prunes_nothing_is_found(query: str) -> None:
    assert scanned(sqlglot.parse_one(query, dialect="bigquery"))["answers"] == HELD_DAYS * PARTITION_BYTES


def test_every_explore_but_that_of_runs_asks_for_the_days() -> None:
    for name, explore in PROJECT.explores.items():
        read = scanned(sqlglot.parse_one(PROJECT.sql(name, [f"{name}.experiment"], derived=True), dialect="bigquery"))
        assert ("horizon" in PROJECT.joins(name)) == (set(read) != {"runs"}), name
        assert ("horizon.days" in str(explore.get("always_filter"))) == ("horizon" in PROJECT.joins(name))


@pytest.mark.parametrize("explore", PROJECT.explores)
def test_a_join_of_runs_is_one_of_partitions(explore: str) -> None:
    for join in PROJECT.joins(explore).values():
        pairs = [REFERENCE.findall(part) for part in join.get("sql_on", "").split(" AND ")]
        for left, right in (pair for pair in pairs if pair and pair[0][1] == "run_id"):
            assert [(left[0], "started_raw"), (right[0], "started_raw")] in pairs


def test_an_explore_shows_what_the_view_shows_of_these_days(outage: duckdb.DuckDBPyConnection) -> None:
    derived = {view.table: view.query for view in PROJECT.views.values() if view.is_table and view.query is not None}
    whole = {name: shown(outage, f"SELECT * FROM {name}") for name in derived}
    days = str((datetime.now(UTC) - FIRST).days)  # the run of the first day is too old for these, and no other
    bounded = {
        name: shown(outage, text.replace("{% parameter horizon.days %}", days)) for name, text in derived.items()
    }
    for name in tables.TABLES.keys() - {"runs"}:
        outage.execute(f"DELETE FROM {name} WHERE started_at = ?", [FIRST])
    assert bounded == {name: shown(outage, f"SELECT * FROM {name}") for name in derived}
    assert {"regressions", "leaderboard", "query_metrics"} <= {name for name in derived if bounded[name] != whole[name]}


def shown(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return sorted(str(row) for row in query_rows(connection, query))


@pytest.mark.parametrize(
    ("run", "days", "text"),
    [
        ("latest", "36500", "began on 2026-01-03 (UTC)"),
        ("last good", "36500", "began on 2026-01-02 (UTC)"),
        ("latest", "0", "no run in 0 days: the chosen one began on 2026-01-03 (UTC)"),
        ("old", "0", "no run in 0 days: the chosen one began on 2026-01-01 (UTC)"),
    ],
)
def test_a_dashboard_says_that_its_run_is_too_old(
    outage: duckdb.DuckDBPyConnection,
    run: str,
    days: str,
    text: str,
) -> None:
    filters = {"Experiment": "e", "Run": run, "Days back": days}
    rows: Rows = query_rows(outage, PROJECT.of_element(ELEMENTS["leaderboard-freshness"], filters))
    assert rows == [{"freshness__experiment": "e", "freshness__chosen_run": text}]
