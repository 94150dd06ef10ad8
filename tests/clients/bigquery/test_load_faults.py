# ruff: noqa: F811  fixtures are named as what they give
"""Loading a run while BigQuery fails: all of it or nothing, and a repeat succeeds."""

import dataclasses
import threading
import time
from pathlib import Path

import pytest
from support.campaigns import in_campaigns
from support.loaded_runs import (
    QUICK,
    assert_holds,
    bigquery,  # noqa: F401  pytest finds it by name
    exact,
    in_files,
    load,
    refused,
)
from support.strict_bigquery import Fault, StrictBigQuery
from support.strict_bigquery.runs import finished

from rankbeam.transforms.records import tables

# Answers that are lost, and servers that have a bad moment

METHODS = ["datasets.get", "tables.get", "tables.insert", "jobs.insert", "upload", "jobs.get", "tables.delete"]


@pytest.mark.parametrize(
    ("methods", "what"),
    [
        (METHODS[2:5], "lost"),
        *in_campaigns(*(([method], "lost") for method in METHODS)),
        *in_campaigns(*(([method], "backendError") for method in METHODS)),
        *in_campaigns(*((["jobs.insert"], what) for what in ("drop", "internalError", "rateLimitExceeded"))),
    ],
)
def test_a_bad_moment_passes(bigquery: StrictBigQuery, tmp_path: Path, methods: list[str], what: str) -> None:
    bigquery.faults += [Fault(method, what, times=3) for method in methods]
    folders = finished(tmp_path / "out")
    load(folders)
    assert {fault.times for fault in bigquery.faults} == {0}
    assert_holds(bigquery, folders)
    assert len(bigquery.began("rankbeam_load")) == len(tables.TABLES)
    assert len(bigquery.began("rankbeam_publish")) == 1


def test_a_server_that_has_only_bad_moments_is_given_up(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    bigquery.faults.append(Fault("jobs.insert", "backendError", times=99))
    assert "BigQuery does not answer: as the script says" in refused(finished(tmp_path / "out"))
    assert bigquery.faults[0].times == 99 - QUICK.attempts


@pytest.mark.long
def test_who_loses_sight_of_the_last_job_says_that_it_may_still_succeed(
    bigquery: StrictBigQuery, tmp_path: Path
) -> None:
    folders = finished(tmp_path / "out")
    bigquery.faults.append(Fault("script", "slow", seconds=0.03))

    def go_blind() -> None:
        while not bigquery.began("publish"):
            time.sleep(0.002)
        bigquery.faults.append(Fault("jobs.get", "backendError", times=99))

    blind = threading.Thread(target=go_blind)
    blind.start()
    message = refused(folders)
    blind.join()
    (job,) = bigquery.began("publish")
    assert f"the job {job.resource['jobReference']['jobId']} may still be running" in message
    bigquery.faults.clear()
    assert job.ended.wait(5)
    load(folders)
    assert_holds(bigquery, folders)


@pytest.mark.long
def test_a_job_that_ends_in_a_passing_error_is_begun_again_under_the_next_id(
    bigquery: StrictBigQuery, tmp_path: Path
) -> None:
    bigquery.faults += [Fault("load", "backendError", times=2), Fault("script", "backendError", times=1)]
    folders = finished(tmp_path / "out")
    load(folders)
    assert_holds(bigquery, folders)
    assert len(bigquery.began("rankbeam_load")) == len(tables.TABLES) + 2
    assert [job.resource["jobReference"]["jobId"][-2:] for job in bigquery.began("rankbeam_publish")] == ["_0", "_1"]
    assert {job_id.rpartition("_")[2] for _, job_id in bigquery.jobs} >= {"0", "1"}


@pytest.mark.long
def test_slow_jobs_are_waited_for(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    bigquery.faults += [Fault("load", "slow", times=3, seconds=0.2), Fault("script", "slow", seconds=0.02)]
    folders = finished(tmp_path / "out")
    load(folders)
    assert_holds(bigquery, folders)
    assert bigquery.methods().count("jobs.get") > 20


# Errors that stay: nothing is half there, and once they are gone a repeat succeeds


LASTING = [
    (Fault("load", "invalid", text="comparisons"), "refused: loading comparisons: as the script says"),
    (Fault("jobs.insert", "quotaExceeded"), "a quota is used up: as the script says; wait until it is renewed"),
    (Fault("script", "accessDenied"), "permission denied"),
    (Fault("tables.insert", "accessDenied", text="/tables"), "roles/bigquery.dataEditor"),
]
MORE = [
    (Fault("load", "accessDenied"), "permission denied: loading"),
    (Fault("load", "quotaExceeded", text="rankings"), "a quota is used up: loading rankings"),
    (Fault("tables.insert", "accessDenied", text="_rankbeam"), "roles/bigquery.dataEditor"),
    (Fault("jobs.insert", "accessDenied"), "roles/bigquery.jobUser"),
    (Fault("jobs.insert", "accessDenied", text="publish"), "permission denied"),
    (Fault("script", "quotaExceeded"), "a quota is used up"),
    (Fault("script", "invalidQuery"), "refused: as the script says"),
    (Fault("datasets.get", "notFound", message="Not found: Dataset a:b"), "bq --location=LOCATION mk"),
    (Fault("datasets.get", "accessDenied"), "permission denied"),
]


@pytest.mark.long
@pytest.mark.parametrize("faults", [LASTING, *in_campaigns(MORE)], ids=["", "more"])
def test_what_fails_leaves_nothing_half_visible_and_a_repeat_succeeds(
    bigquery: StrictBigQuery, tmp_path: Path, faults: list[tuple[Fault, str]]
) -> None:
    """Each replaces the rows that the repeat after the last one has loaded."""
    before = finished(tmp_path / "before")
    load(before)
    for number, (fault, report) in enumerate(faults, 1):
        bigquery.faults.append(dataclasses.replace(fault))
        folders = finished(tmp_path / str(number), minute=5 * number, parts=3)
        again = fault.on == "tables.insert" and not fault.text.startswith("_")
        for name in tables.TABLES if again else ():
            del bigquery.tables["warehouse", name]  # so that it has to be made
        message = refused(folders)
        assert message.startswith("run run was not loaded into test-project.warehouse: "), fault
        assert report in message, fault
        for name in () if again else tables.TABLES:
            assert exact(bigquery.rows(name)) == in_files(before, name), fault
        load(folders)
        for name in tables.TABLES:
            assert exact(bigquery.rows(name)) == in_files(folders, name), fault
        before = folders


@pytest.mark.long
@pytest.mark.parametrize("after", [18, *in_campaigns(1, 2, 3, 5, 9, 13, 17, 19)])
def test_a_script_that_dies_leaves_nothing_half_visible(bigquery: StrictBigQuery, tmp_path: Path, after: int) -> None:
    """Wherever it dies, readers see the old run, and then, when it was begun again, the new one."""
    before = finished(tmp_path / "before")
    load(before)
    bigquery.faults.append(Fault("script", "dies", times=1 + QUICK.conflicts, after=after))
    folders = finished(tmp_path / "out", minute=5, parts=3)
    assert "the script died" in refused(folders)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(before, name)
    load(folders)
    for name in tables.TABLES:
        assert exact(bigquery.rows(name)) == in_files(folders, name)


def test_a_repeat_loads_only_what_is_missing(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "out")
    bigquery.faults.append(Fault("load", "invalid", text="comparisons"))
    refused(folders)
    assert all(not bigquery.rows(name) for name in tables.TABLES)
    load(folders)
    assert_holds(bigquery, folders)
    assert len(bigquery.began("rankbeam_load")) == len(tables.TABLES) + 1


def test_what_a_job_loaded_into_a_table_that_was_made_anew_is_loaded_again(
    bigquery: StrictBigQuery, tmp_path: Path
) -> None:
    folders = finished(tmp_path / "out")
    bigquery.faults.append(Fault("jobs.insert", "accessDenied", text="publish"))
    refused(folders)
    staging = next(name for name in bigquery.names() if name.endswith("_rankings") and name.startswith("_"))
    time.sleep(0.002)  # times of creation are told in milliseconds
    del bigquery.tables["warehouse", staging]
    load(folders)
    assert_holds(bigquery, folders)
    assert len(bigquery.began("rankings")) == 2


def test_a_staging_table_that_vanishes_is_loaded_again(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "out")
    bigquery.faults.append(Fault("script", "slow", seconds=0.05))
    gone = threading.Thread(target=take_away, args=(bigquery,))
    gone.start()
    load(folders)
    gone.join()
    assert_holds(bigquery, folders)
    assert len(bigquery.began("rankings")) == 2


def take_away(bigquery: StrictBigQuery) -> None:
    """Another attempt at the same load takes its staging table away when it ends."""
    while not bigquery.began("publish"):
        time.sleep(0.002)
    with bigquery.lock:
        staging = next(name for name in bigquery.names() if name.endswith("_rankings") and name.startswith("_"))
        time.sleep(0.002)
        del bigquery.tables["warehouse", staging]


@pytest.mark.parametrize("table", ["rankings", "runs"])
def test_files_that_are_missing_are_not_loaded(bigquery: StrictBigQuery, tmp_path: Path, table: str) -> None:
    folders = finished(tmp_path / "out")
    next(Path(folders[table]).iterdir()).unlink()
    assert folders[table] in refused(folders)
    assert bigquery.request_log == []


def test_files_of_two_executions_are_no_run(bigquery: StrictBigQuery, tmp_path: Path) -> None:
    folders = finished(tmp_path / "out")
    other = finished(tmp_path / "other", minute=1)
    assert "files are of several executions" in refused({**folders, "rankings": other["rankings"]})
    assert bigquery.seen("run") == {}
