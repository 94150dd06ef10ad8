"""The first report after the end of a job finishes its run, once, whoever and however many ask for it."""

import json
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import Outcome, rankbeam
from support.flink_rest import flink, job, serving
from support.inputs import trec_qrels, trec_run, write
from support.runs import run_experiment

from rankbeam.pipelines.manage import finish, jobs
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.transforms.clients.ledger.leases.lease import Holder, Lease
from rankbeam.transforms.clients.ledger.leases.places import lease_place
from rankbeam.transforms.clients.warehouse import duckdb as warehouse

STARTED = "2026-01-02T03:04:05+00:00"
RUN = RunRecord(STARTED)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a run with the id r1."""
    folder = tmp_path_factory.mktemp("finished")
    write(folder / "qrels", trec_qrels([("q1", "d", 1.0)]))
    write(folder / "a.run", trec_run([("q1", "d", 1.0)]))
    retriever = {"type": "run_file", "path": "a.run"}
    experiment = {
        "dataset": {"qrels": "qrels"},
        "metrics": ["RR"],
        "configurations": [{"name": "a", "retriever": retriever}],
    }
    run_experiment(folder, experiment, "r1")
    return folder / "out"


@pytest.fixture
def output(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "out"))


@pytest.fixture
def done() -> Iterator[str]:
    """The address of a Flink whose job is done."""
    with serving(flink("FINISHED")) as address:
        yield address


def report(output: Path, *more: str) -> Outcome:
    return rankbeam("report", str(output), *more)


def test_a_report_finishes_a_run_and_the_next_one_does_not(output: Path, done: str) -> None:
    job(output, done, RUN).save()
    first, second = report(output), report(output)
    assert (first.status, first.stdout) == (second.status, second.stdout) == (0, f"{output}/report.html\n")
    assert first.stderr == f"rankbeam: run r1: wrote {output}/results.duckdb\n"
    assert second.stderr == ""


def test_of_two_people_one_finishes_the_run_and_the_other_waits(
    output: Path, done: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one is in the middle of its work while the second one looks."""
    job(output, done, RUN).save()
    working, may_end, builds = threading.Event(), threading.Event(), list[str]()
    build = warehouse.build

    def slow(*arguments: object) -> str:
        builds.append("")
        working.set()
        assert may_end.wait(60)
        return build(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(warehouse, "build", slow)
    with ThreadPoolExecutor(2) as people:
        first = people.submit(finish.finish, str(output), "r1")
        assert working.wait(60)
        second = people.submit(finish.finish, str(output), "r1")
        (lease,) = (output / "jobs" / "leases").glob("lease-*.json")
        assert json.loads(lease.read_text())["run_id"] == "r1"
        assert not second.done()
        may_end.set()
        assert (len(first.result(60)), second.result(60), len(builds)) == (1, (), 1)
    assert list((output / "jobs" / "leases").glob("lease-*.json")) == []


def test_a_process_that_was_killed_in_the_middle_is_passed_over(output: Path, done: str) -> None:
    job(output, done, RUN).save()
    dead = replace(Holder.here("r1", STARTED), pid_started="of a process that has ended")
    assert Lease(lease_place(jobs.folder(str(output))), "finish r1", dead).claim() is None
    assert report(output).stderr == f"rankbeam: run r1: wrote {output}/results.duckdb\n"


def test_what_fails_is_finished_by_the_next_report(output: Path, done: str) -> None:
    job(output, done, RUN).save()
    (output / "results.duckdb").mkdir()
    failed = report(output)
    assert (failed.status, failed.stdout) == (1, f"{output}/report.html\n")  # the page needs no other file
    assert (
        failed.stderr
        == f"rankbeam: run r1 is not finished: {output}/results.duckdb: cannot be opened: Is a directory\n"
    )
    assert not jobs.find(str(output), "r1").get("finished_at")
    (output / "results.duckdb").rmdir()
    assert report(output).stderr == f"rankbeam: run r1: wrote {output}/results.duckdb\n"


@pytest.mark.parametrize(
    ("state", "message", "status"),
    [
        ("RUNNING", "run r1 has no result yet: its job is running; `rankbeam status", 4),
        ("CANCELLING", "run r1 has no result yet: its job is cancelling; `rankbeam status", 4),
        ("FAILED", "run r1 has no result: its job is failed: the job failed: ValueError: no (in step Score)", 1),
        ("CANCELED", "run r1 has no result: its job is canceled", 1),
    ],
)
def test_a_job_without_a_result_says_so(state: str, message: str, status: int, tmp_path: Path) -> None:
    with serving(flink(state, "ValueError: no [while running 'Score-ptransform-7']")) as address:
        job(tmp_path, address, RUN).save()
        outcome = report(tmp_path)
    assert (outcome.status, outcome.stdout) == (status, "")
    assert message in outcome.stderr


def test_an_earlier_run_is_reported_with_a_warning_unless_the_new_one_was_asked_for(output: Path) -> None:
    with serving(flink("RUNNING")) as address:
        job(output, address, RunRecord("2026-01-03T03:04:05+00:00")).save()
        path = output / "jobs" / "r1.json"
        record = json.loads(path.read_text()) | {"run_id": "r2", "submitted_at": "2026-01-03T03:04:06.000+00:00"}
        path.rename(output / "jobs" / "r2.json").write_text(json.dumps(record))
        earlier, latest = report(output), report(output, "--run-id", "r2")
    assert (earlier.status, earlier.stdout) == (0, f"{output}/report.html\n")
    assert "warning: run r2 has no result yet: its job is running" in earlier.stderr
    assert "the report is of an earlier run" in earlier.stderr
    assert (latest.status, latest.stdout) == (4, "")


def test_a_run_whose_engine_is_gone_is_finished_by_its_rows(output: Path) -> None:
    job(output, "http://127.0.0.1:1", RUN).save()
    outcome = report(output)
    assert (outcome.status, outcome.stderr) == (0, f"rankbeam: run r1: wrote {output}/results.duckdb\n")


def test_an_older_job_that_still_loads_does_not_stand_in_for_the_latest_one(output: Path) -> None:
    with serving(flink("RUNNING")) as address:
        job(output, address, RunRecord(STARTED, bigquery="p.d")).save()
        latest = jobs.find(str(output), "r1") | {"run_id": "r2", "submitted_at": "2026-01-03T03:04:06.000+00:00"}
        jobs.save(str(output), "r2", latest | {"finished_at": "2026-01-03T03:05:00.000+00:00"})
        outcome = report(output)
    assert (outcome.status, outcome.stderr) == (0, "")


def test_rows_of_a_job_that_still_loads_are_not_touched(output: Path) -> None:
    """The last row is written before the run is loaded into BigQuery."""
    with serving(flink("RUNNING")) as address:
        job(output, address, RunRecord(STARTED, bigquery="p.d")).save()
        outcome = report(output, "--run-id", "r1")
    assert (outcome.status, outcome.stdout) == (4, "")
    assert not (output / "results.duckdb").exists()


def test_a_record_of_an_earlier_release_is_left_alone(output: Path, done: str) -> None:
    job(output, done).save()
    before = (output / "jobs" / "r1.json").read_bytes()
    outcome = report(output)
    assert (outcome.status, outcome.stderr) == (0, "")
    assert (output / "jobs" / "r1.json").read_bytes() == before
