"""The status of a job on an engine, from Flink's REST API and from the records of cancelled jobs."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from apache_beam.io.filesystem import BeamIOError
from apache_beam.metrics import monitoring_infos
from google.protobuf.json_format import MessageToDict
from support.memory_filesystem import MemoryFileSystem
from support.runs import rankbeam

from rankbeam.pipelines.portable.job import EngineJob
from rankbeam.transforms.records.counters import NAMESPACE, Counter


@contextmanager
def serving(replies: dict[str, Any]) -> Iterator[str]:
    """The address of a server that answers GET requests by their path, without the query."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(replies.get(self.path.partition("?")[0], {})).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def flink(state: str) -> dict[str, Any]:
    """The replies of a Flink that ran one job, which scored 640 queries."""
    info = monitoring_infos.int64_user_counter(NAMESPACE, Counter.QUERIES_SCORED, 640, ptransform="Score")
    metrics = {"metrics": {"attempted": [MessageToDict(info)]}}
    accumulators = [{"type": "MetricsAccumulator", "value": json.dumps(metrics)}]
    return {
        "/jobs/overview": {"jobs": [{"jid": "f1", "name": "rankbeam-e", "start-time": 1}]},
        "/jobs/f1": {"state": state, "vertices": []},
        "/jobs/f1/accumulators": {"user-task-accumulators": accumulators},
    }


def job(folder: Path, address: str) -> EngineJob:
    """The record of a job on that Flink, whose submitting process has ended."""
    at = ("2026-01-02T03:04:05+00:00", "e", str(folder), None, "2026-01-02T03:04:06.000+00:00", None, address)
    return EngineJob("FlinkRunner", "j1", "rankbeam-e", "r1", *at, "EXTERNAL", "elsewhere", 1, "1")


@pytest.mark.parametrize(
    ("state", "is_cancelled", "shown", "exit_status"),
    [
        ("RUNNING", False, "running", 0),
        ("FINISHED", False, "finished", 0),
        ("FAILED", False, "failed", 1),
        ("CANCELED", False, "canceled", 1),
        ("CANCELLING", True, "cancelling", 0),
        ("FAILED", True, "cancelled", 1),  # the lanes of a cancelled job end first, and Flink calls that a failure
        ("FINISHED", True, "finished", 0),
    ],
)
def test_failed_and_cancelled_jobs_have_exit_status_1(
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


def test_a_job_that_its_engine_has_forgotten_has_failed_unless_its_run_is_there(tmp_path: Path) -> None:
    with serving({"/jobs/overview": {"jobs": []}}) as address:
        job(tmp_path, address).save()
        gone = rankbeam("status", str(tmp_path))
        (tmp_path / "runs" / "r1").mkdir(parents=True)
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
