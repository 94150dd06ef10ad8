"""The cost of a benchmark before it is made: prices, batch jobs, and tokens of answers in the ledger."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.goldens import goldens_file, lines
from support.standin_models import KEY, service
from support.standins import serve

PRICES = {"price_per_million": {"input": 100.0, "output": 400.0}}
ADDRESS = "http://localhost:1/v1"  # never called


def planned(folder: Path, model: dict[str, Any], **more: Any) -> dict[str, Any]:
    services = {"model": model, "vectors": {**model, "model": "vectors"}}
    options = {"quotas": {"model": PRICES}, "reviews": {"pool": 0}, **more}
    path = goldens_file(folder, services=services, writer="model", checker="model", **options)
    outcome = rankbeam("goldens", "plan", path, "--format", "json")
    assert outcome.status == 0, outcome.stderr
    return dict(json.loads(outcome.stdout))


def test_a_pool_without_calls_needs_no_price(tmp_path: Path) -> None:
    model = {"type": "openai", "base_url": ADDRESS, "model": "m"}
    retrievers = ["bm25", {"type": "dense", "embedding_model": "vectors"}]
    plan = planned(tmp_path, model, reviews={"pool": {"documents": 0, "retrievers": retrievers}})
    assert [pool["pool"] for pool in plan["pools"]] == ["model"]
    assert plan["cost"] == plan["pools"][0]["cost"]
    plan = planned(tmp_path, model, reviews={"pool": {"documents": 2, "retrievers": retrievers}})
    assert [pool["pool"] for pool in plan["pools"]] == ["model", "vectors"]
    assert plan["cost"] is None


def test_texts_that_share_a_request_take_the_time_of_one(tmp_path: Path) -> None:
    model = {"type": "openai", "base_url": ADDRESS, "model": "m", "texts_per_request": 8}
    retrievers = [{"type": "dense", "embedding_model": "vectors"}]
    quotas = {"vectors": {"requests_per_minute": 60}}
    plan = planned(tmp_path, model, reviews={"pool": {"documents": 2, "retrievers": retrievers}}, quotas=quotas)
    (pool,) = (pool for pool in plan["pools"] if pool["pool"] == "vectors")
    texts = pool["steps"][0]["calls"][1]
    assert (texts, pool["requests"], pool["seconds"]) == (24 + 8, [4, 4], [4.0, 4.0])  # documents and questions


def test_batch_jobs_are_decided_once_for_the_fewest_and_the_most_calls(tmp_path: Path) -> None:
    online = {"type": "openai", "base_url": ADDRESS, "model": "m"}
    (full,) = planned(tmp_path, online)["pools"]
    most = max(step["calls"][1] for step in full["steps"])
    (pool,) = planned(tmp_path, {**online, "batch": {"min_calls": most}})["pools"]
    assert pool["batch_steps"] == 1  # only with as many calls as are possible
    halves = [full - half for full, half in zip(pool["cost"], pool["batch_cost"], strict=True)]
    assert 0 < halves[0] < halves[1]


def test_tokens_are_those_of_answers_in_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai") as server:
        model = service("openai", server)
        before = planned(tmp_path, model)
        outcome = rankbeam("goldens", str(tmp_path / "goldens.yaml"))
        assert outcome.status == 0, outcome.stderr
        after = planned(tmp_path, model)
    used = lines(tmp_path / "out" / "usage.json")
    assert {row["stage"] for row in used} == {"write"}
    for kind in ("input_tokens", "output_tokens"):
        paid = sum(row["tokens"][kind.removesuffix("_tokens")] for row in used)
        assert before["pools"][0][kind][0] != paid
        assert after["pools"][0][kind] == [0, pytest.approx(paid, rel=0.001)]  # as much again for rejected questions
