"""The status of a job on an engine, from Flink's REST API and from the records of cancelled jobs."""

import json
from pathlib import Path

import pytest
from apache_beam.io.filesystem import BeamIOError
from support.flink_rest import flink, job, serving
from support.memory_filesystem import MemoryFileSystem
from support.runs import rankbeam


@pytest.mark.parametrize(
    ("state", "is_cancelled", "shown", "exit_status"),
    [
        ("RUNNING", False, "running", 4),
        ("FINISHED", False, "finished", 0),
        ("FAILED", False, "failed", 1),
        ("CANCELED", False, "canceled", 1),
        ("CANCELLING", True, "cancelling", 4),
        ("FAILED", True, "cancelled", 1),  # the lanes of a cancelled job end first, and Flink calls that a failure
        ("FINISHED", True, "finished", 0),
    ],
)
def test_the_exit_status_says_the_state(
    state: str, is_cancelled: bool, shown: str, exit_status: int, tmp_path: Path
) -> None:
    with serving(flink(state)) as address:
        submitted = job(tmp_path, address)
        submitted.save()
        if is_cancelled:
            submitted.stop_calls()
        outcome = rankbeam("status", str(tmp_path))
        document = json.loads(rankbeam("status", str(tmp_path), "--format", "json").stdout)
    assert outcome.exit_code == exit_status, outcome.stderr
    assert f"state    {shown}\n" in outcome.stdout
    assert "640  queries scored" in outcome.stdout
    assert ("cancel   " in outcome.stdout) == (shown in ("running", "cancelling"))
    assert (document["state"], document["counters"]["queries_scored"]) == (shown, 640)


def test_flink_says_why_a_job_failed(tmp_path: Path) -> None:
    problem = "java.lang.RuntimeException: Error\n\tat a.B\nValueError: no [while running 'Score-ptransform-7']\n"
    with serving(flink("FAILED", problem)) as address:
        job(tmp_path, address).save()
        shown = rankbeam("status", str(tmp_path))
        document = json.loads(rankbeam("status", str(tmp_path), "--format", "json").stdout)
    assert shown.stdout.splitlines()[-1] == "the job failed: ValueError: no (in step Score)"
    assert document["problems"] == ["the job failed: ValueError: no (in step Score)"]


def test_a_job_that_its_engine_has_forgotten_has_failed_unless_its_run_is_there(tmp_path: Path) -> None:
    with serving({"/jobs/overview": {"jobs": []}}) as address:
        job(tmp_path, address).save()
        gone = rankbeam("status", str(tmp_path))
        (tmp_path / "runs" / "r1").mkdir(parents=True)
        (tmp_path / "runs" / "r1" / "part-00000-of-00001.parquet").touch()
        done = rankbeam("status", str(tmp_path))
    assert ("state    gone" in gone.stdout, gone.exit_code) == (True, 1)
    assert ("state    done" in done.stdout, done.exit_code) == (True, 0)


def test_a_record_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    with serving(flink("FAILED")) as address:
        job(tmp_path, address).save()
        path = tmp_path / "jobs" / "r1.json"
        record = json.loads(path.read_text())
        del record["is_cancelled"]
        path.write_text(json.dumps(record))
        assert "state    failed" in rankbeam("status", str(tmp_path)).stdout


def test_a_bucket_that_refuses_is_not_called_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BeamIOError("403 Forbidden")

    monkeypatch.setattr(MemoryFileSystem, "_list", refuse)
    outcome = rankbeam("status", "mem://bucket/out")
    assert outcome.exit_code == 2
    assert "cannot be looked up" in outcome.stderr
    assert "403 Forbidden" in outcome.stderr
    assert "holds no submitted job" not in outcome.stderr
