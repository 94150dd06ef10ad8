# ruff: noqa: F811  fixtures are named as what they give
"""Deleting runs from BigQuery, one by one or by age."""

from datetime import UTC, datetime, timedelta

import pytest
from support.cli import rankbeam
from support.loaded_runs import (
    DATASET,
    QUICK,
    bigquery,  # noqa: F401  pytest finds it by name
    load,
)
from support.strict_bigquery import Fault, StrictBigQuery
from support.strict_bigquery.runs import BEGAN, finished

from rankbeam.transforms.clients.bigquery.results import delete_runs
from rankbeam.transforms.clients.bigquery.session import Session
from rankbeam.transforms.clients.bigquery.tables import ensure, expire
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The files of three runs."""
    out = tmp_path_factory.mktemp("runs")
    ids = ("one", "two", "three")
    return {run_id: finished(out, run_id, minute, parts=1, rows=1) for minute, run_id in enumerate(ids)}


@pytest.fixture
def loaded(bigquery: StrictBigQuery, folders: dict[str, dict[str, str]]) -> StrictBigQuery:
    """A dataset with these runs."""
    for run_id, files in folders.items():
        load(files, run_id)
    return bigquery


def began(minute: int) -> datetime:
    return BEGAN + timedelta(minutes=minute)


def runs_by_table(bigquery: StrictBigQuery) -> dict[str, set[str]]:
    return {name: {row["run_id"] for row in bigquery.rows(name)} for name in tables.TABLES}


def everywhere(*run_ids: str) -> dict[str, set[str]]:
    return {name: {*run_ids} for name in tables.TABLES}


@pytest.mark.parametrize("faults", [[], [Fault("jobs.insert", "lost")], [Fault("script", "dies", after=5)]])
def test_runs_are_deleted_from_all_tables_and_others_stay(loaded: StrictBigQuery, faults: list[Fault]) -> None:
    loaded.faults += faults
    delete_runs(DATASET, [("one", began(0)), ("two", began(1))], QUICK)
    assert runs_by_table(loaded) == everywhere("three")


def test_only_the_execution_of_that_day_is_deleted(loaded: StrictBigQuery) -> None:
    """Every statement names the partition."""
    delete_runs(DATASET, [("one", datetime(2026, 2, 1, tzinfo=UTC))], QUICK)
    assert runs_by_table(loaded) == everywhere("one", "two", "three")
    (job,) = loaded.began("delete")
    deletions = [line for line in job.configuration["query"]["query"].splitlines() if line.startswith("DELETE")]
    assert len(deletions) == len(tables.TABLES)
    assert all("started_at = @started_at" in line for line in deletions)


def test_a_transaction_that_fails_deletes_nothing_and_says_where_it_stopped(loaded: StrictBigQuery) -> None:
    loaded.faults.append(Fault("script", "accessDenied"))
    with pytest.raises(InputError, match="the run one was not deleted, and none after it: permission denied"):
        delete_runs(DATASET, [("one", began(0)), ("two", began(1))], QUICK)
    assert runs_by_table(loaded) == everywhere("one", "two", "three")


def test_tables_of_an_older_release_are_enough(loaded: StrictBigQuery) -> None:
    del loaded.tables["warehouse", "monitor"]
    delete_runs(DATASET, [("one", began(0))], QUICK)
    assert {row["run_id"] for row in loaded.rows("runs")} == {"two", "three"}


def expiry(bigquery: StrictBigQuery) -> set[str | None]:
    names = bigquery.names()
    return {bigquery.table("warehouse", name).resource["timePartitioning"].get("expirationMs") for name in names}


def test_all_tables_expire_equally_also_those_that_come_later(bigquery: StrictBigQuery) -> None:
    ensure(Session(DATASET, QUICK), "runs")
    assert expiry(bigquery) == {None}
    expire(DATASET, 400, QUICK)
    for name in tables.TABLES:
        ensure(Session(DATASET, QUICK), name)
    assert expiry(bigquery) == {str(400 * 24 * 60 * 60 * 1000)}
    expire(DATASET, 0, QUICK)
    assert expiry(bigquery) == {None}
    assert bigquery.defaults == {"warehouse": {"defaultPartitionExpirationMs": None}}


def test_without_a_terminal_nothing_expires_by_accident(bigquery: StrictBigQuery) -> None:
    outcome = rankbeam("warehouse", "apply", "--dataset", str(DATASET), "--partition-days", "30")
    assert outcome.status == 2
    assert "now and from now on? There is no terminal to confirm this; add --yes" in outcome.stderr
    assert bigquery.defaults == {}
    assert rankbeam("warehouse", "apply", "--dataset", str(DATASET), "--yes").status == 2
