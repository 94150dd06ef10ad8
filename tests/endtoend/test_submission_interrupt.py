"""Ctrl-C pressed twice while a job is submitted: whoever pressed it hears that the job may have begun."""

import shlex
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import pytest
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from support.processes import COMMAND, Process
from support.remote import dataset, write_experiment
from support.runs import rankbeam

WITHIN_S = 120.0


class Hanging(beam_job_api_pb2_grpc.JobServiceServicer):
    """A job server that never answers a submission."""

    def __init__(self) -> None:
        self.has_begun, self.is_over = Event(), Event()

    def DescribePipelineOptions(self, *_: Any) -> Any:  # noqa: N802  the service's name
        return beam_job_api_pb2.DescribePipelineOptionsResponse()

    def Prepare(self, *_: Any) -> Any:  # noqa: N802  the service's name
        self.has_begun.set()
        self.is_over.wait(WITHIN_S)


@pytest.fixture
def server() -> Iterator[tuple[Hanging, str]]:
    jobs, listener = Hanging(), grpc.server(ThreadPoolExecutor(4))
    beam_job_api_pb2_grpc.add_JobServiceServicer_to_server(jobs, listener)
    port = listener.add_insecure_port("127.0.0.1:0")
    listener.start()
    yield jobs, f"127.0.0.1:{port}"
    jobs.is_over.set()
    listener.stop(0)


def test_a_second_interrupt_of_a_submission(tmp_path: Path, server: tuple[Hanging, str]) -> None:
    jobs, address = server
    (tmp_path / "a.run").write_text("q0 Q0 d0 1 1.0 a\n")
    retriever = {"type": "run_file", "path": str(tmp_path / "a.run")}
    base = {"dataset": dataset(tmp_path, 3), "configurations": [{"name": "a", "retriever": retriever}]}
    arguments = ["evaluate", write_experiment(tmp_path, base), "--run-id", "r", "--runner=PortableRunner"]
    arguments += [f"--job_endpoint={address}", "--environment_type=LOOPBACK"]
    with Process(COMMAND, *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert jobs.has_begun.wait(WITHIN_S)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert any("press Ctrl-C again to stop at once" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        last = process.stderr.read().splitlines()[-1]
        assert process.wait(WITHIN_S) == 130
    command = shlex.join(["rankbeam", "cancel", f"{tmp_path}/out", "--run-id", "r"])
    assert last == f"rankbeam: interrupted; the job may have begun; `{command}` cancels it"
    cancelled = rankbeam(*shlex.split(command)[1:])
    assert (cancelled.exit_code, cancelled.stdout.startswith("cancelled ")) == (0, True)
