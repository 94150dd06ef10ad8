# ruff: noqa: F811  fixtures are named as what they give
"""Loading a run while others read and load, or kill it: all of it or nothing, once."""

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.campaigns import in_campaigns
from support.data import REPOSITORY
from support.loaded_runs import (
    DATASET,
    QUICK,
    assert_holds,
    bigquery,  # noqa: F401  pytest finds it by name
    columns,
    exact,
    in_files,
    load,
    refused,
)
from support.processes import Process
from support.strict_bigquery import Fault, StrictBigQuery
from support.strict_bigquery.runs import BEGAN, finished

from rankbeam.transforms.clients.bigquery import loads, publish, schemas
from rankbeam.transforms.clients.bigquery.session import Patience, Session
from rankbeam.transforms.clients.bigquery.tables import ensure
from rankbeam.transforms.records import tables

# Several at once


@pytest.mark.long
def test_readers_see_all_of_a_run_or_nothing(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    bigquery.faults.append(Fault("script", "slow", times=2, seconds=0.01))
    looks: list[dict[str, set[Any]]] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            looks.append(bigquery.seen("run"))
            time.sleep(0.001)

    reader = threading.Thread(target=read)
    reader.start()
    load(finished(tmp_path / "first"))
    load(finished(tmp_path / "second", minute=1))
    ended.set()
    reader.join()
    kinds = {(len(look), frozenset().union(*look.values())) for look in looks}
    all_of_them = len(tables.TABLES)
    assert kinds == {
        (0, frozenset()),
        (all_of_them, frozenset({BEGAN})),
        (all_of_them, frozenset({BEGAN + timedelta(minutes=1)})),
    }


@pytest.mark.long
@pytest.mark.parametrize("first", [True, *in_campaigns(False)], ids=["new run", "run that is there"])
def test_two_runs_of_one_id_at_once_do_not_double_it(bigquery: StrictBigQuery, tmp_path: Path, *, first: bool) -> None:
    """Also when nothing is there to be deleted, and BigQuery would let both transactions pass."""
    if not first:
        load(finished(tmp_path / "before"))
    bigquery.faults.append(Fault("script", "slow", times=9, seconds=0.01))
    both = [finished(tmp_path / name, minute=minute, parts=1) for minute, name in enumerate(("a", "b"), 1)]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(load, both))
    (begun,) = set().union(*bigquery.seen("run").values())
    winner = both[0] if begun == BEGAN + timedelta(minutes=1) else both[1]
    assert_holds(bigquery, winner)


@pytest.mark.long
def test_the_same_load_twice_at_once(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    """As when Beam believes that a worker is dead, and it is not."""
    bigquery.faults.append(Fault("script", "slow", times=9, seconds=0.005))
    folders = finished(tmp_path / "out", parts=1)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(load, [folders] * 3))
    assert_holds(bigquery, folders)


@pytest.mark.campaign
def test_runs_that_end_at_the_same_time_wait_for_each_other(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    ids = ["a", "b", "c"]
    for run_id in ids:
        load(finished(tmp_path / "before" / run_id, run_id), run_id)
    bigquery.faults.append(Fault("script", "slow", times=99, seconds=0.002))
    folders = {run_id: finished(tmp_path / "after" / run_id, run_id, minute=1, parts=1) for run_id in ids}
    patience = Patience(first_s=0.05, longest_s=0.2, poll_s=0.005)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda run_id: publish.load_run(DATASET, run_id, folders[run_id], patience), ids))
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == sorted(
            line for folder in folders.values() for line in in_files(folder, name)
        )
    ended = [job.error.message for job in bigquery.began("publish") if job.error is not None]
    assert all("concurrent update" in message for message in ended)


def test_a_table_that_others_write_to_all_the_time_is_a_clear_error(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    message = "Transaction is aborted due to concurrent update against table runs."
    bigquery.faults.append(Fault("script", "invalidQuery", times=99, message=message))
    assert f"another job wrote at the same time: {message}" in refused(finished(tmp_path / "out"))
    assert len(bigquery.began("publish")) == 1 + QUICK.conflicts


@pytest.mark.long
@pytest.mark.parametrize("seen", ["rankbeam_publish", *in_campaigns("rankbeam_load")])
def test_whoever_is_killed_leaves_nothing_half_visible(bigquery: StrictBigQuery, tmp_path: Path, seen: str) -> None:
    before = finished(tmp_path / "before")
    load(before)
    bigquery.faults += [Fault("load", "slow", times=3, seconds=0.5), Fault("script", "slow", times=1, seconds=0.1)]
    folders = finished(tmp_path / "out", minute=1)
    code = (
        "import sys, json\nfrom rankbeam.transforms.clients.bigquery.names import DatasetName\n"
        "from rankbeam.transforms.clients.bigquery.publish import load_run\n"
        "load_run(DatasetName('test-project', 'warehouse'), 'run', json.loads(sys.argv[1]))"
    )
    already = len(bigquery.began(seen))
    with Process(code, json.dumps(folders), cwd=REPOSITORY) as process:
        while len(bigquery.began(seen)) == already:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(before, name)
    load(folders)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(folders, name)


# What may stand in SQL


@pytest.mark.long
def test_values_are_parameters_and_names_are_checked(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    hostile = "run.-_` WHERE TRUE; --"
    folders = finished(tmp_path / "out", hostile, parts=1, rows=1)
    load(finished(tmp_path / "other", parts=1, rows=1))
    load(folders, hostile)
    for name in tables.TABLES:
        assert {row["run_id"] for row in bigquery.rows(name)} == {"run", hostile}
    text = publish.statements(DATASET, "0a", tables.TABLES)
    assert "WHERE TRUE" not in text
    assert text.index("BEGIN TRANSACTION") < text.index("DELETE") < text.index("INSERT")
    assert text.rindex("INSERT INTO `test-project.warehouse.runs`") == text.rindex("INSERT")
    assert text.endswith("COMMIT TRANSACTION;")
    assert bigquery.began("publish")[-1].configuration["query"]["queryParameters"][0] == {
        "name": "run_id",
        "parameterType": {"type": "STRING"},
        "parameterValue": {"value": hostile},
    }


@pytest.mark.usefixtures("bigquery")
def test_the_stub_is_strict(tmp_path: Path) -> None:
    """The stub refuses each of these, so its acceptance of others means something."""
    folders = finished(tmp_path / "out")
    session = Session(DATASET, QUICK)
    run = loads.find_run("run", folders)
    schemas_by_table = {name: ensure(session, name) for name in tables.TABLES}
    unknown = [column for column in schemas_by_table["failures"] if column["name"] != "kind"]
    more = [*schemas_by_table["failures"], *columns("more STRING REQUIRED")]
    other = [
        {**column, "type": "FLOAT"} if column["name"] == "kind" else column for column in schemas_by_table["failures"]
    ]
    for key, given_columns, message in (("a", unknown, "no such field"), ("b", more, "missing"), ("c", other, "FLOAT")):
        with pytest.raises(Exception, match=message):
            loads.load(session, run, key, {"failures": given_columns})
    from google.api_core.exceptions import Conflict
    from google.cloud.bigquery import QueryJobConfig

    config = QueryJobConfig(use_legacy_sql=False, query_parameters=[])
    assert session.wait(session.query("literal", "DELETE FROM `a.b.c` WHERE run_id = 'x'", config)).error_result
    with pytest.raises(Conflict):
        session.client.query("SELECT", config, "literal", location="europe-west1", retry=None, job_retry=None)
    assert session.job("literal") is not None
    session.location = "US"
    assert session.job("literal") is None  # jobs are found where they ran


def test_a_type_that_bigquery_lacks_is_a_bug() -> None:
    with pytest.raises(TypeError, match="BigQuery has no type for"):
        schemas.columns_of(pa.schema([pa.field("n", pa.duration("s"))]))
