"""Two runs on one ledger, one that was killed, and a ledger that cannot be written: nothing is paid for twice."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.processes import COMMAND, Process
from support.remote import answers, dataset, http, write_experiment
from support.standins import Standin, serve

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.ledger.survey import survey

QUERIES = 40


def experiment(folder: Path, server: Standin, per_second: float = 100, **more: Any) -> str:
    base = {"dataset": dataset(folder, QUERIES), "quotas": {"http": {"requests_per_minute": per_second * 60}}}
    base["configurations"] = [{"name": "remote", "retriever": http(server), "top_k": 20}]
    return write_experiment(folder, base | more)


@contextmanager
def running(path: str, run_id: str, when: Callable[[], bool]) -> Iterator[Process]:
    """A run in a process of its own, once it is as far as that."""
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Process(COMMAND, "evaluate", path, "--run-id", run_id, **piped) as process:
        deadline = time.monotonic() + 120
        while not when():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
        process.kill()


@pytest.mark.campaign
def test_a_second_run_is_refused_or_waits_and_pays_for_nothing(tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        path = experiment(tmp_path, server, per_second=20)
        with running(path, "first", lambda: server.stats().calls >= 5) as first:
            os.kill(first.pid, signal.SIGSTOP)  # as long as its process is there, it may go on
            refused = rankbeam("evaluate", path, "--run-id", "second", "--wait-for-lease", "0")
            with running(path, "third", lambda: True) as third:
                assert third.stderr is not None
                line = next(line for line in third.stderr if "waiting" in line)
                os.kill(first.pid, signal.SIGCONT)
                assert (first.wait(60), third.wait(60)) == (0, 0)
        calls = server.stats().calls
    name = (
        f"quota pool http {server.url}, lane 0: run first (host {socket.gethostname()}, process {first.pid}, since 20"
    )
    assert refused.status == 2
    assert name in refused.stderr
    assert "--wait-for-lease" in refused.stderr
    assert not (tmp_path / "out" / "runs" / "second").exists()
    assert line.startswith(f"rankbeam: {name}")
    runs = [Results(str(tmp_path / "out"), run).run for run in ("first", "third")]
    assert [run["ledger_hits"] for run in runs] == [0, QUERIES]
    assert runs[0]["calls"] >= calls >= QUERIES  # what was in flight when the process was stopped may be asked again
    assert runs[1]["calls"] == 0
    assert not list((tmp_path / "out" / "ledger" / "leases").glob("lease-*"))


@pytest.mark.campaign
def test_a_run_that_was_killed_delays_no_other(tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        path = experiment(tmp_path, server, per_second=10)
        with running(path, "first", lambda: server.stats().calls >= 15) as first:
            os.kill(first.pid, signal.SIGKILL)
            first.wait(60)
        left = survey(str(tmp_path / "out" / "ledger"))
        assert [run.run_id for run in left.runs] == ["first"]
        # Each answer is kept as it arrives; the number of calls is noted now and then, so it may be behind.
        assert 0 < left.entries <= server.stats().calls
        assert 0 < left.calls <= server.stats().calls
        outcome = rankbeam("evaluate", path, "--run-id", "second", "--wait-for-lease", "0")
        assert outcome.status == 0, outcome.stderr
        assert server.stats().calls <= QUERIES + 10
    run = Results(str(tmp_path / "out"), "second").run
    assert run["ledger_hits"] > 0
    assert run["calls"] + run["ledger_hits"] == QUERIES


def test_a_ledger_that_cannot_be_written_is_refused_before_the_first_call(tmp_path: Path) -> None:
    (tmp_path / "in-the-way").write_text("a file")
    with serve("http", answers=answers(QUERIES)) as server:
        path = experiment(tmp_path, server, output={"path": "out", "ledger": "in-the-way/ledger"})
        outcome = rankbeam("evaluate", path, "--run-id", "r1")
        assert server.stats().calls == 0
    assert outcome.status == 2
    assert f"{tmp_path}/in-the-way/ledger: the ledger of finished calls cannot be written: Not a dir" in outcome.stderr
    assert "no call was made" in outcome.stderr
