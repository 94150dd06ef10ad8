"""Known items of a judge behind a network: planned, paid for within `max_cost`, and asked once a week."""

from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.standin_answers import cost, dataset, model, planned, write_experiment
from support.standins import Standin, serve

from rankbeam.pipelines.results.run import Results

QUERIES, CONTEXTS, KNOWN = 26, 3, 24  # 24 items of the step `grade`
PAIRS = QUERIES * CONTEXTS
PRICES = {"price_per_million": {"input": 100.0, "output": 20.0}}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


def judging(folder: Path, server: Standin, **more: Any) -> str:
    """An experiment whose judge has contexts and answers enough to be asked known items, too."""
    (folder / "data").mkdir(parents=True)
    quota = {**PRICES, "concurrent_calls": 4}
    return write_experiment(folder, model(server, "openai"), quota, dataset=dataset(folder / "data", QUERIES), **more)


def grading(folder: Path, server: Standin) -> str:
    """An experiment whose judge grades contexts alone."""
    configurations = [{"name": "bm25", "retriever": {"type": "bm25"}, "top_k": CONTEXTS}]
    return judging(folder, server, configurations=configurations, metrics=[f"ContextRelevance@{CONTEXTS}"])


def sentinels(folder: Path, run_id: str) -> int:
    return sum(row["sentinels"] for row in Results(str(folder / "out"), run_id).table("judge_quality").to_pylist())


@pytest.mark.campaign
def test_known_items_are_planned_as_they_are_asked(tmp_path: Path) -> None:
    with serve("openai") as server:
        path = grading(tmp_path, server)
        before = planned(path)
        run = rankbeam("evaluate", path, "--run-id", "r1")
        calls = server.stats().calls
        after = planned(path)
    assert run.status == 0, run.stderr
    steps = {step["step"]: (step["calls"], step["calls_without_sharing"]) for step in before["steps"]}
    assert steps == {"grade": ([PAIRS, PAIRS], PAIRS), "known items": ([KNOWN, KNOWN], KNOWN)}
    assert calls == PAIRS + KNOWN
    assert before["cost"][0] > 0
    assert (after["ledger_hits"], after["cost"]) == (calls, [0, 0])
    assert sentinels(tmp_path, "r1") == KNOWN


@pytest.mark.campaign
def test_known_items_are_paid_within_the_limit_and_the_next_run_asks_the_rest(tmp_path: Path) -> None:
    with serve("openai") as server:
        path = judging(tmp_path / "free", server)
        least, _ = planned(path)["cost"]
        assert rankbeam("evaluate", path, "--run-id", "r1").status == 0
        whole, needed = cost(tmp_path / "free", "r1"), server.stats().calls
    limit = (least + whole) / 2
    with serve("openai", latency_s=0.01) as server:
        path = judging(tmp_path / "limited", server, max_cost=limit)
        first = rankbeam("evaluate", path, "--run-id", "r1")
        second = rankbeam("evaluate", path, "--run-id", "r2")
        stats = server.stats()
    assert (first.status, second.status) == (3, 0), first.stderr
    assert cost(tmp_path / "limited", "r1") <= limit
    assert cost(tmp_path / "limited", "r1") + cost(tmp_path / "limited", "r2") == pytest.approx(whole)
    assert stats.calls == needed
    assert sentinels(tmp_path / "limited", "r2") == 2 * KNOWN  # of claims and of support
