"""The plan's estimate with cached tokens: calls that share a beginning above the model's minimum, and their price."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.standin_answers import QUERIES, model, planned, write_experiment
from support.standins import serve

PRICES = {"price_per_million": {"input": 100.0, "cached": 10.0, "output": 4.0}}
MINIMUM = 1024


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


def plan(folder: Path, characters: int, prices: dict[str, Any] = PRICES) -> dict[str, Any]:
    """The plan of answers whose prompts begin with the same text of so many characters."""
    (folder / "answer.txt").write_text("x" * characters + "\n---\n{query} {contexts}\n", "utf-8")
    rag = {"name": "rag", "retriever": {"type": "bm25"}, "top_k": 5}
    generate = {"service": "m", "contexts": 3, "template": "answer.txt"}
    with serve("openai") as server:
        path = write_experiment(
            folder,
            model(server, "openai"),
            prices,
            configurations=[{**rag, "generate": generate}],
            metrics=["nDCG@5"],
        )
        outcome = rankbeam("plan", path, "--format", "json")
        assert server.stats().calls == 0
    assert outcome.status == 0, outcome.stderr
    planned = json.loads(outcome.stdout)
    (pool,) = planned["models"]
    assert planned["cost"] == [(pool["cached_cost"] or pool["cost"])[0], pool["cost"][1]]
    return dict(pool)


def test_calls_that_share_a_long_beginning_are_counted_and_priced(tmp_path: Path) -> None:
    pool = plan(tmp_path, 4 * MINIMUM)
    assert (pool["prefix_tokens"], pool["prefix_calls"]) == (MINIMUM, QUERIES - 1)
    saved = (QUERIES - 1) * MINIMUM * (100 - 10) / 1e6
    assert pool["cached_cost"] == pytest.approx([cost - saved for cost in pool["cost"]])


@pytest.mark.long
def test_a_beginning_below_the_minimum_saves_nothing(tmp_path: Path) -> None:
    pool = plan(tmp_path, 4 * MINIMUM - 200)
    assert (pool["prefix_calls"], pool["cached_cost"]) == (0, None)


@pytest.mark.long
def test_without_a_price_of_cached_tokens_there_is_one_cost(tmp_path: Path) -> None:
    pool = plan(tmp_path, 4 * MINIMUM, {"price_per_million": {"input": 100.0, "output": 4.0}})
    assert (pool["prefix_calls"], pool["cached_cost"]) == (QUERIES - 1, None)


def test_known_items_share_the_beginning_of_the_judged_ones(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "claims.txt").write_text("x" * 4 * MINIMUM + "\n---\n{query} {text} {fence}\n", "utf-8")
    with serve("openai") as server:
        more = {"judge": {"service": "m", "prompts": "prompts", "repeat_share": 0}, "metrics": ["ContextRecall@5"]}
        rag = {"name": "rag", "retriever": {"type": "bm25"}, "top_k": 5}
        pool = planned(write_experiment(tmp_path, model(server, "openai"), PRICES, 24, configurations=[rag], **more))
    calls = {step["step"]: step["calls"][1] for step in pool["steps"]}
    assert (calls["claims"], calls["known items"]) == (24, 48)  # 24 known items of each of the two steps
    assert pool["prefix_calls"] == 24 + 24 - 1
