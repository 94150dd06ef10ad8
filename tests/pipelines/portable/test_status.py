"""The status of a job on an engine, from Flink's REST API and from the records of cancelled jobs."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from apache_beam.io.filesystem import BeamIOError
from apache_beam.metrics import monitoring_infos
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from support.flink_rest import flink, job, serving
from support.inputs import trec_qrels, trec_run, write
from support.memory_filesystem import MemoryFileSystem
from support.runs import rankbeam

from rankbeam import InputError, evaluate
from rankbeam.pipelines.portable.job import reason
from rankbeam.pipelines.portable.service import JobService
from rankbeam.transforms.records.counters import NAMESPACE, Counter


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


def test_a_run_on_this_machine_does_not_delete_the_rows_of_a_job_that_still_runs(tmp_path: Path) -> None:
    write(tmp_path / "qrels", trec_qrels([("q1", "d", 1.0)]))
    write(tmp_path / "a.run", trec_run([("q1", "d", 1.0)]))
    text = "name: e\ndataset: {qrels: qrels}\nmetrics: [RR]\noutput: {path: out}\n"
    text += "configurations: [{name: a, retriever: {type: run_file, path: a.run}}]\n"
    with serving(flink("RUNNING")) as address:
        job(tmp_path / "out", address).save()
        path = write(tmp_path / "e.yaml", text)
        outcome = rankbeam("evaluate", path, "--run-id", "r1")
        with pytest.raises(InputError) as refused:
            evaluate(path, run_id="r1")
    assert outcome.exit_code == 2, outcome.stdout
    problem = "the job rankbeam-e is still writing the run r1; wait for it, cancel it (rankbeam cancel "
    assert problem in outcome.stderr
    assert problem in str(refused.value)


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


def test_a_job_is_done_if_its_run_is_there_also_where_its_job_server_has_ended(tmp_path: Path) -> None:
    replace(job(tmp_path, ""), flink=None, endpoint="localhost:1").save()
    unknown = rankbeam("status", str(tmp_path))
    write(tmp_path / "runs" / "r1" / "part-00000-of-00001.parquet", "")
    done = rankbeam("status", str(tmp_path))
    assert ("the job server at localhost:1 refused a request" in unknown.stderr, unknown.exit_code) == (True, 1)
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


class Prism(beam_job_api_pb2_grpc.JobServiceServicer):
    """As Prism reports counters: attempted ones lack bundles that ended between two reports of their progress."""

    def GetJobMetrics(self, *_: Any) -> Any:  # noqa: N802  the service's name
        def counter(name: Counter, number: int) -> Any:
            return monitoring_infos.int64_user_counter(NAMESPACE, name, number, ptransform=name)

        attempted = [counter(Counter.JUDGED_QUERIES, 16), counter(Counter.QUERIES_ASKED, 48)]
        committed = [counter(Counter.JUDGED_QUERIES, 64)]
        metrics = beam_job_api_pb2.MetricResults(attempted=attempted, committed=committed)
        return beam_job_api_pb2.GetJobMetricsResponse(metrics=metrics)


def test_counters_of_ended_bundles_count_whether_or_not_their_progress_was_reported() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    beam_job_api_pb2_grpc.add_JobServiceServicer_to_server(Prism(), server)
    endpoint = f"localhost:{server.add_insecure_port('localhost:0')}"
    server.start()
    with grpc.insecure_channel(endpoint) as channel:
        counts = JobService(channel, endpoint).counts("job-001")
    server.stop(None)
    assert counts == {(Counter.JUDGED_QUERIES, ""): 64, (Counter.QUERIES_ASKED, ""): 48}


def test_a_long_line_of_an_error_is_read_once() -> None:  # trying each of its letters would take hours
    assert reason("a" * 1_000_000).startswith("the job failed: aaa")
