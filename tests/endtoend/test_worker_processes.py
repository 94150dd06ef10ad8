"""Worker processes that are ended while they make calls: quietly, and without losing any that is paid for."""

import signal
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.remote import answers, dataset, http, signalled, write_experiment
from support.runs import query_values
from support.standins import serve

from rankbeam.pipelines.results.run import Results

QUERIES = 150
WORKERS = ["--direct_running_mode", "multi_processing", "--direct_num_workers", "2"]


@pytest.mark.campaign
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_calls_in_flight_end_and_nothing_else_is_said(number: signal.Signals, tmp_path: Path) -> None:
    with serve("http", answers=answers(QUERIES), latency_s=1.0) as server:
        base = {"dataset": dataset(tmp_path, QUERIES), "quotas": {"http": {"requests_per_minute": 60 * 60}}}
        base["configurations"] = [{"name": "remote", "retriever": http(server), "top_k": 20}]
        path = write_experiment(tmp_path, base)
        arguments = ["evaluate", path, "--run-id", "r1", *WORKERS]
        ended = signalled(arguments, number, lambda: server.stats().calls >= 70, tmp_path)
        begun = server.stats()
        assert begun.answered == begun.calls < QUERIES
        outcome = rankbeam("evaluate", path, "--run-id", "r1")
        assert outcome.status == 0, outcome.stderr
        assert server.stats().calls == QUERIES
    assert ended.status == 130

    assert [line.partition(";")[0] for line in ended.stderr.splitlines() if line.startswith("rankbeam:")] == [
        "rankbeam: stopping",
        "rankbeam: interrupted",
    ]
    assert "Traceback" not in ended.stderr
    assert len(query_values(Results(str(tmp_path / "out"), "r1"))["remote"]) == QUERIES
