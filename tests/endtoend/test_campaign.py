"""The fault campaign: a service that fails one call in ten in every way it can, and a run that is killed half-way."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest
from support.campaigns import sized
from support.cli import rankbeam_process
from support.remote import answers, dataset, http, rag, signalled, write_experiment
from support.runs import query_values
from support.standins import DEFAULT_KINDS, Faults, Standin, serve

from rankbeam.pipelines.results.run import Results

pytestmark = pytest.mark.campaign

CALLS, WINDOW_S = sized(2000, 800), 5
RETRIEVERS = {"rag_engine": rag, "http": http}


def experiment(folder: Path, kind: str, server: Standin, per_minute: float) -> str:
    """An experiment that asks all queries under a quota, and waits three seconds for an answer."""
    quota = {"requests_per_minute": per_minute, "timeout_s": 3, "attempts": 8}
    base = {"dataset": dataset(folder, CALLS), "quotas": {kind: quota}, "max_failure_rate": 0.0}
    base["configurations"] = [{"name": "remote", "retriever": RETRIEVERS[kind](server), "top_k": 20}]
    return write_experiment(folder, base)


def rankings(results: Results) -> dict[str, list[tuple[int, str, float, str]]]:
    """Everything that was retrieved, by query."""
    names = ("rank", "doc_id", "score", "text")
    rows = results.table("rankings").to_pylist()
    return {row["query_id"]: [tuple(document[name] for name in names) for document in row["documents"]] for row in rows}


@pytest.mark.parametrize(("kind", "per_minute"), [("rag_engine", 3000), ("http", 4000)])
def test_every_result_is_that_of_an_undisturbed_run(kind: str, per_minute: float, tmp_path: Path) -> None:
    faults = Faults(rate=0.1, kinds=DEFAULT_KINDS, seed=7, hang_s=60, hint_s=1.0)
    by_query = answers(CALLS)
    with serve(kind, answers=by_query, faults=faults, latency_s=(0.05, 0.5), quota_per_minute=per_minute) as server:
        path = experiment(tmp_path / "faulty", kind, server, per_minute)
        arguments = ["evaluate", path, "--run-id", "r1"]
        killed = signalled(arguments, signal.SIGKILL, lambda: server.stats().calls >= CALLS // 3, tmp_path)
        done = rankbeam_process(*arguments, timeout_s=240)
        stats = server.stats()
    assert killed.status == -signal.SIGKILL
    assert done.status == 0, done.stderr
    with serve(kind, answers=by_query) as server:
        path = experiment(tmp_path / "clean", kind, server, 60_000)
        assert rankbeam_process("evaluate", path, "--run-id", "r1").status == 0
    faulty, clean = (Results(str(tmp_path / name / "out"), "r1") for name in ("faulty", "clean"))
    assert query_values(faulty) == query_values(clean)
    assert rankings(faulty) == rankings(clean)
    assert len(rankings(faulty)) == CALLS
    assert min(stats.faults.get(kind, 0) for kind in ("quota", "unavailable", "hang", "malformed")) > CALLS // 400
    assert stats.calls <= 1.15 * CALLS, stats.faults
    assert stats.violations_per_minute == 0
    # The server takes the time when it handles a request: on a busy machine it sees calls of one second in the next.
    # That the pace is exact is shown on the virtual clock.
    arrivals = np.array(sorted(stats.arrivals))
    within = np.searchsorted(arrivals, arrivals + WINDOW_S) - np.arange(len(arrivals))
    assert within.max() <= 1.5 * WINDOW_S * per_minute / 60


def test_a_sweep_of_a_slow_service_is_one_call_a_query_and_many_at_once(tmp_path: Path) -> None:
    """A notebook asked 648 queries one after the other, and again for every k: 1,944 calls of 3.5 s, two hours."""
    queries = sized(648, 250)
    with serve("rag_engine", answers=answers(queries), latency_s=3.5, quota_per_minute=1500) as server:
        base = {"dataset": dataset(tmp_path, queries), "quotas": {"rag_engine": {"requests_per_minute": 1500}}}
        base |= {"configurations": [{"name": "rag", "retriever": rag(server)}], "grid": {"top_k": [5, 10, 100]}}
        outcome = rankbeam_process("evaluate", write_experiment(tmp_path, base), "--format", "json", timeout_s=240)
        stats = server.stats()
    assert outcome.status == 0, outcome.stderr
    assert len(json.loads(outcome.stdout)["leaderboard"]) == 3
    assert stats.calls == queries
    assert stats.violations_per_minute == 0
    assert stats.most_open >= 10  # 87 on a machine that keeps up: 25 calls a second, 3.5 s each
