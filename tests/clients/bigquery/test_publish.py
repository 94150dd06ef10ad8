"""Publishing runs: a new one only adds rows, and one of another experiment is left alone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.strict_bigquery import Fault, StrictBigQuery, serve
from support.strict_bigquery.runs import finished

from rankbeam.transforms.clients.bigquery import loads, publish
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.session import Patience, Session, parameters
from rankbeam.transforms.clients.bigquery.tables import ensure
from rankbeam.transforms.records import tables

QUICK = Patience(conflicts=1, first_s=0.0, poll_s=0.005)
DATASET = DatasetName("test-project", "warehouse")


@pytest.fixture
def bigquery(monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictBigQuery]:
    with serve() as server:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", server.url)
        server.dataset("warehouse")
        yield server


def load(folders: dict[str, str], run_id: str = "run") -> None:
    publish.load_run(DATASET, run_id, folders, QUICK)


@pytest.mark.long
def test_new_runs_that_end_at_once_do_not_get_in_each_others_way(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    """A DELETE, of no rows too, would have BigQuery abort all but one; nobody here tries a second time."""
    ids = [f"r{number}" for number in range(5)]
    folders = {run_id: finished(tmp_path / run_id, run_id, parts=1, rows=1) for run_id in ids}
    bigquery.faults.append(Fault("script", "slow", times=99, seconds=0.005))
    with ThreadPoolExecutor(5) as threads:
        list(threads.map(lambda run_id: load(folders[run_id], run_id), ids))
    for name in tables.TABLES:
        assert sorted(row["run_id"] for row in bigquery.rows(name)) == ids
        assert bigquery.table("warehouse", name).deletions == 0
    assert len(bigquery.began("publish")) == len(ids)


@pytest.mark.long
def test_only_tables_that_hold_rows_of_a_run_delete_them(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    load(finished(tmp_path / "first"))
    bigquery.table("warehouse", "failures").rows = []
    load(finished(tmp_path / "second", minute=1))
    assert {name: bigquery.table("warehouse", name).deletions for name in tables.TABLES} == {
        name: int(name != "failures") for name in tables.TABLES
    }


def publications_asked_for(bigquery: StrictBigQuery) -> set[str]:
    return {path for method, path in bigquery.request_log if method == "jobs.get" and "publish" in path}


@pytest.mark.campaign
def test_a_fixed_run_id_looks_up_as_few_jobs_in_every_night(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    lookups = []
    for night in range(9):
        bigquery.request_log.clear()
        load(finished(tmp_path / str(night), minute=night, parts=1, rows=1))
        lookups.append(len(publications_asked_for(bigquery)))
        assert [row["started_at"].minute for row in bigquery.rows("runs")] == [night]
    assert lookups == [1] * 9


@pytest.mark.campaign
def test_an_execution_that_is_published_again_and_again_replaces_itself(
    bigquery: StrictBigQuery, tmp_path: Path
) -> None:
    first, second = (finished(tmp_path / str(minute), minute=minute, parts=1, rows=1) for minute in (0, 1))
    for folders, minute in ((first, 0), (first, 0), (second, 1), (first, 0), (second, 1), (second, 1)):
        load(folders)
        assert [row["started_at"].minute for row in bigquery.rows("runs")] == [minute]
    assert len(bigquery.began("publish")) == 6


def test_an_insert_takes_only_rows_of_the_execution(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    """A second guard, beside the statement that refuses files of several executions: here that one is left out."""
    other = finished(tmp_path / "other", minute=1)
    run = loads.find_run("run", {**finished(tmp_path / "out"), "rankings": other["rankings"]})
    session = Session(DATASET, QUICK)
    loads.load(session, run, "0a", {name: ensure(session, name) for name in tables.TABLES})
    _, _, unguarded = publish.statements(DATASET, "0a", {"runs"}).partition("\n")
    values = parameters(run_id=run.run_id, started_at=run.started_at, experiment=run.experiment)
    assert session.outcome("unguarded", unguarded, values) is None
    assert bigquery.rows("rankings") == []
    assert bigquery.rows("query_metrics")
    assert {row["started_at"] for name in tables.TABLES for row in bigquery.rows(name)} == {run.started_at}
