"""Statements for BigQuery run on an independent emulator that parses GoogleSQL: loading runs, and all views."""

import re
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Any

import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from support.cli import rankbeam
from support.data import REPOSITORY
from support.emulators import googlesql
from support.looker import Project
from support.nights import ALERTS, SETTINGS, at, template
from support.processes import COMMAND, Process
from support.strict_bigquery.runs import finished

from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables

DATASET = f"{googlesql.PROJECT}.warehouse"
ROWS = {name: 1 if name == "runs" else 2 for name in tables.TABLES}


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[bigquery.Client]:
    googlesql.require()
    with googlesql.serve("warehouse") as url:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", url)
        yield bigquery.Client(googlesql.PROJECT, credentials=AnonymousCredentials())


def load(folder: Path) -> None:
    outcome = rankbeam("warehouse", "load", str(folder), "--dataset", DATASET)
    assert outcome.status == 0, outcome.stderr


def query_rows(client: bigquery.Client, query: str) -> list[tuple[Any, ...]]:
    return [row.values() for row in client.query_and_wait(query)]


def counted(client: bigquery.Client) -> dict[str, tuple[int, str]]:
    """The number of rows of every table, and the minutes of the hour in which their executions began."""
    parts = (
        f"SELECT '{name}', COUNT(*), STRING_AGG(DISTINCT FORMAT_TIMESTAMP('%M', started_at)) FROM `{DATASET}.{name}`"
        for name in tables.TABLES
    )
    return {name: (count, minutes) for name, count, minutes in query_rows(client, " UNION ALL ".join(parts))}


@pytest.mark.campaign
def test_a_load_that_is_killed_shows_nothing_and_is_repeated_and_replaced(
    emulator: bigquery.Client, tmp_path: Path
) -> None:
    for minute in (0, 1):
        finished(tmp_path / str(minute), "r", minute=minute, parts=1, rows=2)
    words = ["warehouse", "load", str(tmp_path / "0"), "--dataset", DATASET]
    with Process(COMMAND, *words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 90
        while not any(listed.table_id.startswith("_") for listed in emulator.list_tables("warehouse")):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert {count for count, _ in counted(emulator).values()} == {0}
    for minute in (0, 1):
        load(tmp_path / str(minute))
        assert counted(emulator) == {name: (count, f"0{minute}") for name, count in ROWS.items()}


@pytest.mark.long
def test_all_views_can_be_made_and_read(emulator: bigquery.Client) -> None:
    """Over empty tables: with rows this emulator takes minutes, and another one has them."""
    outcome = rankbeam("warehouse", "apply", "--dataset", DATASET)
    assert outcome.status == 0, outcome.stderr
    assert sorted(outcome.stdout.split()) == sorted(f"{DATASET}.{name}" for name in views.sources())
    for name in views.sources():
        assert query_rows(emulator, f"SELECT * FROM `{DATASET}.{name}`") == []


def analysed(client: bigquery.Client, query: str) -> None:
    """Make a view of a query: this parses and analyses it."""
    view = f"{DATASET}.analysed_{uuid.uuid4().hex}"
    statement = f"CREATE VIEW `{view}` AS {at(query, datetime(2026, 3, 1, 6, tzinfo=UTC))}"
    client.query_and_wait(statement, retry=None, job_retry=None)


@pytest.mark.campaign
def test_queries_of_alerts_and_dashboards_are_googlesql(emulator: bigquery.Client) -> None:
    """They are analysed only: this emulator takes minutes to run some of them, and DuckDB runs them elsewhere."""
    assert rankbeam("warehouse", "apply", "--dataset", DATASET).status == 0
    with pytest.raises(GoogleAPICallError, match="Unrecognized name: absent"):
        analysed(emulator, f"SELECT absent FROM `{DATASET}.runs`")
    for name in ALERTS:
        settings = SETTINGS | {"project": googlesql.PROJECT, "dataset": "warehouse"}
        analysed(emulator, Template(template(name)).substitute(settings))
    project = Project(REPOSITORY / "deploy" / "looker")
    for element in (element for board in project.dashboards.values() for element in board["elements"]):
        filters = {"Started": "90 days", "Days back": "30"}
        query = project.of_element(element, {name: filters.get(name, "x") for name in element["listen"]})
        analysed(emulator, re.sub(r"\bmain\.(\w+)|(?<=FROM )(run_history|cost)(?= AS)", rf"`{DATASET}.\1\2`", query))
