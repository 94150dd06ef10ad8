"""Alerts about results: each query fires for the rows that it must and no others, and filters find their entries."""

import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from string import Template
from typing import Any

import duckdb
import pytest
import sqlglot
from support import deploy_files
from support.log_filters import holds
from support.nights import ALERTS, SETTINGS, at, messages, night, template
from support.outage import FIRST, empty_tables, query_rows
from support.pruning import PARTITION_BYTES, scanned
from support.terraform import RESOURCES
from support.terraform_values import evaluated, needs_terraform, refusal

MORNING = FIRST + timedelta(days=2, hours=6)
GOOD, BAD, NONE = [0.8, 0.6] * 15, [0.3, 0.2] * 15, [None] * 30
NIGHTS: dict[str, list[Sequence[float | None]]] = {
    "good": [GOOD, GOOD, GOOD],
    "drift": [GOOD, GOOD, BAD],
    "drift before": [GOOD, BAD, BAD],
    "outage": [GOOD, NONE, NONE],
    "missing": [GOOD],
}
FIRED = {
    "good": {"cost"},
    "drift": {"cost", "monitor", "regressions"},
    "drift before": {"cost", "monitor"},
    "outage": {"cost", "fresh_run"},
    "missing": {"fresh_run"},
}


@pytest.mark.parametrize("case", NIGHTS)
def test_an_alert_fires_for_its_reason_alone(small_tables: duckdb.DuckDBPyConnection, case: str) -> None:
    for day, values in enumerate(NIGHTS[case]):
        night(small_tables, day, values, "nightly")
        night(small_tables, day, GOOD, "other")  # as good as ever, and nobody waits for it
    fired = {name: messages(small_tables, name, MORNING) for name in ALERTS}
    assert {name for name in ALERTS if any("nightly" in text for text in fired[name])} == FIRED[case]
    assert {name for name in ALERTS if any("other" in text for text in fired[name])} == FIRED[case] & {"cost"}


def test_messages_say_what_and_how_much(small_tables: duckdb.DuckDBPyConnection) -> None:
    for day, values in enumerate(NIGHTS["drift"]):
        night(small_tables, day, values, "nightly")
    assert {name: messages(small_tables, name, MORNING) for name in ALERTS} == {
        "cost": ["the runs of nightly in the last day cost 3.0, and the limit is 2.5"],
        "fresh_run": [],
        "monitor": ["nightly: RR of bm25 fell since the baseline b: a change of -0.25"],
        "regressions": ["nightly: bm25 is worse by RR: 0.25 after 0.7 over the same 30 queries"],
    }
    (late,) = messages(small_tables, "fresh_run", MORNING + timedelta(days=2))
    assert late.startswith("no run of nightly with any value in 36 hours; the last one began on 2026-01-03 ")
    (never,) = messages(small_tables, "fresh_run", MORNING + timedelta(days=200))
    assert never == "no run of nightly with any value in 36 hours; there is none in 90 days"


def test_an_alert_is_raised_once(small_tables: duckdb.DuckDBPyConnection) -> None:
    for day, values in enumerate(NIGHTS["drift"]):
        night(small_tables, day, values, "nightly")
    tomorrow = MORNING + timedelta(days=1)
    assert [messages(small_tables, name, tomorrow) for name in ALERTS if name != "fresh_run"] == [[], [], []]


def test_a_run_that_ends_after_the_queries_of_its_day_is_seen_a_day_later(
    small_tables: duckdb.DuckDBPyConnection,
) -> None:
    night(small_tables, 1, GOOD, "nightly")
    night(small_tables, 2, BAD, "nightly", hours=4)  # until seven o'clock, and the queries run at six
    fired = [
        [name for name in ("cost", "monitor", "regressions") if messages(small_tables, name, MORNING + timedelta(days))]
        for days in (1, 2)
    ]
    assert fired == [["cost", "monitor", "regressions"], []]


def test_the_limit_itself_is_no_reason(small_tables: duckdb.DuckDBPyConnection) -> None:
    night(small_tables, 2, GOOD, "nightly")
    assert messages(small_tables, "cost", MORNING, most_cost="3.0") == []
    assert len(messages(small_tables, "cost", MORNING, most_cost="2.99")) == 1


def test_files_are_made_from_their_sources() -> None:
    stored = {path: path.read_text(encoding="utf-8") for path in deploy_files.FOR_ALERTS.glob("*.sql")}
    assert stored == deploy_files.alerts(), "run make deploy-files"


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_reads_the_partitions_of_90_days(name: str) -> None:
    text = re.sub(r"`p\.d\.(\w+)`", r"main.\1", Template(template(name)).substitute(SETTINGS))
    read = scanned(sqlglot.parse_one(text, dialect="bigquery"))
    del read["runs"]
    assert read
    assert {size % (90 * PARTITION_BYTES) for size in read.values()} == {0}


@needs_terraform
def test_terraform_wraps_each_query_so_that_it_fails_with_its_reasons(tmp_path: Path) -> None:
    variables = {"fresh_experiments": '{default=["nightly"]}', "most_cost_per_day": "2.5", "teams": "{search={}}"}
    queries = evaluated("local.alert_queries", tmp_path, **variables)
    assert queries.keys() == {*ALERTS, *(f"search/{name}" for name in ALERTS if name != "fresh_run")}
    assert all("`my-project.rankbeam_search." in queries[f"search/{name}"]["query"] for name in ("cost", "monitor"))
    connection = empty_tables()  # in a transaction, the first of these errors would end it
    for day, values in enumerate(NIGHTS["drift"]):
        night(connection, day, values, "nightly")
    for name in ALERTS:
        query = at(re.sub(r"`my-project\.rankbeam\.(\w+)`", r"main.\1", queries[name]["query"]), MORNING)
        if expected := messages(connection, name, MORNING):
            with pytest.raises(duckdb.Error, match=re.escape(expected[0])):
                query_rows(connection, query)
        else:
            assert query_rows(connection, query) == [{"report": "nothing to report"}]


@needs_terraform
def test_settings_without_a_value_watch_nothing(tmp_path: Path) -> None:
    assert evaluated("keys(local.alert_queries)", tmp_path) == ["monitor", "regressions"]


@needs_terraform
@pytest.mark.parametrize(
    ("teams", "reason"),
    [
        ("{search={}}", ""),
        ("{serch={}}", "fresh_experiments names teams that do not exist: search. The teams are default, serch."),
    ],
)
def test_experiments_of_an_unknown_team_are_refused(tmp_path: Path, teams: str, reason: str) -> None:
    experiments = '{default=["nightly"],search=["nightly"]}'
    printed = refusal(
        "google_bigquery_data_transfer_config.alerts", tmp_path, teams=teams, fresh_experiments=experiments
    )
    assert reason in printed
    assert bool(printed) == bool(reason)


ENTRY: dict[str, Any] = {
    "resource": {"type": "bigquery_dts_config", "labels": {"project_id": "p", "location": "us", "config_id": "abc"}},
    "severity": "ERROR",
    "jsonPayload": {"message": "Query error: no run of nightly"},
}


def log_filter(name: str) -> str:
    (condition,) = RESOURCES[f"google_monitoring_alert_policy.{name}"]["conditions"]
    (log,) = condition["condition_matched_log"]
    text = str(log["filter"])[1:-1].replace('\\"', '"')
    return re.sub(r"\$\{element\(split\(.*?\.name\), -1\)\}", "abc", text)


@pytest.mark.parametrize(
    ("change", "fires"),
    [
        ({}, True),
        ({"severity": "INFO"}, False),
        ({"severity": "CRITICAL"}, True),
        ({"resource": {"type": "bigquery_dts_config", "labels": {"config_id": "other"}}}, False),
        ({"resource": {"type": "cloud_scheduler_job", "labels": {"config_id": "abc"}}}, False),
    ],
)
def test_a_policy_finds_the_failure_of_its_query(change: dict[str, Any], fires: bool) -> None:
    assert holds(log_filter("results"), ENTRY | change) is fires


@pytest.mark.parametrize(("job", "fires"), [("rankbeam-nightly", True), ("other-rankbeam-nightly", False)])
def test_a_policy_finds_a_launch_that_was_refused(job: str, fires: bool) -> None:
    entry = {"resource": {"type": "cloud_scheduler_job", "labels": {"job_id": job}}, "severity": "ERROR"}
    assert holds(log_filter("failed_launch"), entry) is fires
