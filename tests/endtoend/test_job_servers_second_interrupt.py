"""Ctrl-C pressed twice: the command leaves without waiting, and says how the job is cancelled."""

import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.campaigns import SHARE
from support.cli import rankbeam
from support.job_server import job_server_process, worker_pool
from support.processes import COMMAND, Process
from support.remote import answers, dataset, http, write_experiment
from support.standins import serve

QUERIES = 300
WITHIN_S = 300.0

pytestmark = [pytest.mark.campaign, pytest.mark.skipif(SHARE < 1, reason="takes long: make campaign runs it")]


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[str]]:
    """The options that name a pool of workers."""
    with worker_pool(tmp_path) as options:
        yield options


def test_a_second_interrupt_leaves_the_job_and_says_how_to_cancel_it(tmp_path: Path, workers: list[str]) -> None:
    """The job server stands still, so that the job cannot be cancelled before the second Ctrl-C."""
    with (
        job_server_process(tmp_path) as (address, server),
        serve("http", answers=answers(QUERIES), latency_s=0.2) as standin,
    ):
        base = {"dataset": dataset(tmp_path, QUERIES), "quotas": {"http": {"requests_per_minute": 120}}}
        base["configurations"] = [{"name": "remote", "retriever": http(standin), "top_k": 20}]
        arguments = ["evaluate", write_experiment(tmp_path, base), "--run-id", "r", "--runner=PortableRunner"]
        arguments += [f"--job_endpoint={address}", *workers]
        with Process(COMMAND, *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + WITHIN_S
            while standin.stats().calls < 3:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            server.send_signal(signal.SIGSTOP)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            assert any("press Ctrl-C again to leave without waiting" in line for line in process.stderr)
            process.send_signal(signal.SIGINT)
            last = process.stderr.read().splitlines()[-1]
            assert process.wait(WITHIN_S) == 130
        server.send_signal(signal.SIGCONT)
        command = shlex.join(["rankbeam", "cancel", f"{tmp_path}/out", "--run-id", "r"])
        assert last.endswith(f"interrupted; the job may continue; `{command}` cancels it")
        # The first Ctrl-C has asked the server to cancel the job, which it may have done by now.
        for _ in range(2):
            cancelled = rankbeam(*shlex.split(command)[1:])
            assert cancelled.status == 0, cancelled.stderr
            assert cancelled.stdout.startswith("cancelled ")
        time.sleep(3)  # lanes look every second whether they shall stop
        begun = standin.stats().calls
        assert begun < QUERIES
        time.sleep(5)  # a worker that was left behind would go on
        assert standin.stats().calls == begun
