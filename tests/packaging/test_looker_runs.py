"""Dashboards of runs with outages, over time, and for whom: their queries run over small tables."""

from datetime import timedelta

import duckdb
import pytest
from support.data import REPOSITORY
from support.looker import Project
from support.outage import FIRST, VALUES, common, insert, query_rows

from rankbeam.transforms.records.errors import FailureKind

PROJECT = Project(REPOSITORY / "deploy" / "looker")
ELEMENTS = {
    (name, element["name"]): element
    for name, dashboard in PROJECT.dashboards.items()
    for element in dashboard["elements"]
}
OF_RUNS = {key: element for key, element in ELEMENTS.items() if "Run" in element["listen"]}
OVER_TIME = {key: element for key, element in ELEMENTS.items() if "Started" in element["listen"]}
EVER = {"Days back": "36500"}


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
    filters = {"Experiment": "e", "Metric": "RR", "Query": query, "Run": "last good"} | EVER
    assert query_rows(outage, PROJECT.of_element(OF_RUNS[key], filters))


def test_queries_that_lose_most_have_lost(outage: duckdb.DuckDBPyConnection) -> None:
    element = ELEMENTS["leaderboard", "queries"]
    filters = {"Experiment": "e", "Metric": "RR"} | EVER
    (row,) = query_rows(outage, PROJECT.of_element(element, filters | {"Run": "last good"}))
    assert (row["side_by_side__query_id"], row["side_by_side__difference"]) == ("q0", pytest.approx(-0.1))
    assert query_rows(outage, PROJECT.of_element(element, filters | {"Run": "latest"})) == []


@pytest.mark.parametrize("key", [key for key in OVER_TIME if key[0] == "leaderboard"], ids="-".join)
def test_the_newest_rows_are_kept(small_tables: duckdb.DuckDBPyConnection, key: tuple[str, str]) -> None:
    connection = small_tables
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
    rows = query_rows(connection, PROJECT.of_element(element, {"Experiment": "e", "Metric": "RR"} | EVER))
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
