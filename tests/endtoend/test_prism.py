"""Runs on Prism, Beam's own engine for the Job API."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.campaigns import SHARE, sized
from support.cli import rankbeam_process
from support.engines import WITHIN_S, evaluated, same
from support.flink import missing_prism, prism
from support.goldens import goldens_file, stable
from support.remote import answers, dataset, http, signalled, write_experiment
from support.standins import serve

OPTIONS = ["--runner=PrismRunner", f"--prism_location={prism()}"]
QUERIES = sized(200, least=60)
KILLED = 600

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(missing_prism() is not None, reason=str(missing_prism())),
]

whole = pytest.mark.skipif(SHARE < 1, reason="takes long: make flink-test runs it")


@whole
def test_a_killed_run_continues_where_it_was(tmp_path: Path) -> None:
    """SIGKILL of the submitting process, which has the workers; its Prism ends with it."""
    with serve("http", answers=answers(KILLED), latency_s=0.2, quota_per_minute=900) as standin:
        base = {"dataset": dataset(tmp_path, KILLED), "quotas": {"http": {"requests_per_minute": 900}}}
        base["configurations"] = [{"name": "remote", "retriever": http(standin), "top_k": 20}]
        path = write_experiment(tmp_path, base)
        kill(["evaluate", path, "--run-id", "r", *OPTIONS], lambda: standin.stats().calls >= KILLED // 3)
        assert not (tmp_path / "out" / "runs" / "r").exists()
        results = evaluated(path, tmp_path / "out", *OPTIONS)
        assert standin.stats().calls <= KILLED * 1.05
        assert standin.stats().violations_per_minute == 0
        same(evaluated(path, tmp_path / "local"), results)


def kill(arguments: list[str], when: Callable[[], bool]) -> None:
    """Kill a command as soon as something is so, and wait for the end of the processes that it started."""
    with subprocess.Popen([sys.executable, "-m", "rankbeam", *arguments], stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + WITHIN_S
        while not when():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        started = [os.pidfd_open(child) for child in descendants(process.pid)]
        process.kill()
    assert started
    for child in started:
        assert select.select([child], [], [], 60)[0], "a process outlives the command that started it"
        os.close(child)


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    children = [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(number for child in children for number in descendants(child))]


def test_an_interrupt_ends_the_calls_and_the_next_run_continues(tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES), latency_s=0.5) as standin:
        base = {"dataset": dataset(tmp_path, QUERIES), "quotas": {"http": {"requests_per_minute": 600}}}
        base["configurations"] = [{"name": "remote", "retriever": http(standin), "top_k": 20}]
        path = write_experiment(tmp_path, base)
        arguments = ["evaluate", path, "--run-id", "r", *OPTIONS]
        ended = signalled(arguments, signal.SIGINT, lambda: standin.stats().calls >= 20, tmp_path, within_s=WITHIN_S)
        begun = standin.stats()
        assert (ended.status, begun.answered) == (130, begun.calls), ended.stderr
        assert not (tmp_path / "out" / "runs" / "r").exists()
        time.sleep(5)  # a worker that was left behind would go on
        assert standin.stats().calls == begun.calls < QUERIES
        evaluated(path, tmp_path / "out", *OPTIONS)
        assert standin.stats().calls == QUERIES


def test_a_benchmark_equals_the_local_runners(tmp_path: Path) -> None:
    path = goldens_file(tmp_path, items=4, reviews={"pool": 3})
    for name, options in {"local": [], "prism": OPTIONS}.items():
        outcome = rankbeam_process("goldens", path, "--output", str(tmp_path / name), *options, timeout_s=WITHIN_S)
        assert outcome.status == 0, outcome.stderr[-4000:]
    assert stable(tmp_path / "prism") == stable(tmp_path / "local")
