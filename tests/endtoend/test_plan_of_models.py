"""`rankbeam plan` with models makes no call, and predicts the calls of the run."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support import batches
from support.cli import rankbeam
from support.data import REPOSITORY
from support.remote import rag
from support.runs import evaluated
from support.standin_answers import QUERIES, model, planned, write_experiment
from support.standins import serve

PRICES = {"price_per_million": {"input": 1.0, "output": 4.0}}
HELPDESK = REPOSITORY / "examples" / "helpdesk"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")


@pytest.mark.campaign
def test_twelve_configurations_of_the_helpdesk_share_their_verdicts_on_pairs(tmp_path: Path) -> None:
    experiment = {
        "name": "pool",
        "dataset": {
            "queries": str(HELPDESK / "queries.jsonl"),
            "qrels": str(HELPDESK / "qrels" / "test.tsv"),
            "corpus": str(HELPDESK / "corpus.jsonl"),
            "answers": "answer",
        },
        "services": {"m": {"type": "openai", "base_url": "http://localhost:1/v1", "model": "m-001"}},
        "configurations": [{"name": "bm25", "retriever": {"type": "bm25"}, "top_k": 10}],
        "grid": {"k1": [0.9, 1.2, 1.5], "b": [0.3, 0.5, 0.75, 0.9]},
        "judge": {"service": "m", "repeat_share": 0},
        "metrics": ["ContextRecall@10"],
        "output": {"path": "out"},
    }
    path = tmp_path / "e.yaml"
    path.write_text(yaml.safe_dump(experiment))
    steps = {step["step"]: (step["calls"], step["calls_without_sharing"]) for step in planned(str(path))["steps"]}
    known = ([48, 48], 48)  # 24 of each of the two steps
    assert steps == {"claims": ([64, 64], 12 * 64), "support": ([0, 689], 7680), "known items": known}


@pytest.mark.long
def test_what_is_planned_is_what_is_made_and_afterwards_all_of_it_is_in_the_ledger(tmp_path: Path) -> None:
    with serve("gemini") as server:
        quota = {**PRICES, "tokens_per_minute": 600_000}
        path = write_experiment(tmp_path, model(server, "gemini"), quota, queries=4)
        before = planned(path)
        assert server.stats().calls == 0
        assert evaluated(path, run_id="r1").run["state"] == "done"
        calls = server.stats().calls
        after = planned(path)
        shown = rankbeam("plan", path).stdout
    answer = next(step for step in before["steps"] if step["step"] == "answer")
    assert answer["calls"] == [4, 4]
    assert before["calls"][0] <= calls <= before["calls"][1]
    assert 0 < before["cost"][0] < before["cost"][1]
    of_tokens = sum(before[name][1] for name in ("input_tokens", "output_tokens")) / 10_000
    assert before["seconds"][1] == pytest.approx(of_tokens)
    assert (after["calls"], after["ledger_hits"], after["cost"]) == ([calls, calls], calls, [0, 0])
    assert f"{calls:,} of {calls:,} are in the ledger" in shown


@pytest.mark.campaign
def test_rankings_of_a_remote_retriever_that_are_not_there_are_said_to_be_imagined(tmp_path: Path) -> None:
    with serve("rag_engine", documents=[f"d{number}" for number in range(24)]) as retriever, serve("openai") as server:
        configurations = [
            {"name": name, "retriever": rag(retriever, **more), "top_k": 5} for name, more in
            (("one", {}), ("other", {"corpus": "projects/p/locations/us-central1/ragCorpora/43"}))
        ]  # fmt: skip
        more = {"configurations": configurations, "metrics": ["ContextRecall@5"]}
        path = write_experiment(tmp_path, model(server, "openai"), {}, **more)
        outcome = rankbeam("plan", path)
        before = planned(path)
        assert rankbeam("evaluate", path, "--run-id", "r1").status == 0
        calls = server.stats().calls
        after = planned(path)
    assert f"{QUERIES} queries have no rankings yet" in outcome.stderr
    known_items = 24 * 2  # of each step, once there are 100 contexts and answers to judge
    assert before["calls"] == [QUERIES, QUERIES * 11 + known_items]  # a reference may make no claim
    assert QUERIES * 6 <= calls <= QUERIES * 11
    assert after["calls"] == [calls, calls]
    assert before["cost"] is None


BM25 = {"name": "rag", "retriever": {"type": "bm25"}, "top_k": 5}
HYDE = {**BM25, "rewrite": {"service": "m", "kind": "hyde"}}
GENERATE = {"generate": {"service": "m", "contexts": 1}}
CRITERIA = {name: {"question": f"Is it {name}?"} for name in ("Polite", "Deep", "Short")}


@pytest.mark.long
@pytest.mark.parametrize(
    ("configuration", "criteria", "jobs"), [(HYDE, {}, 0), (BM25 | GENERATE, CRITERIA, 1)], ids=["rewrite", "criteria"]
)
def test_the_forecast_contains_what_is_paid(
    configuration: dict[str, Any], criteria: dict[str, Any], jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that rewrite are shorter than the longest, and one job has the calls of all criteria."""
    batch = {"min_calls": 2 * QUERIES}
    more = {"judge": {"service": "m", "repeat_share": 0, "criteria": criteria}} if criteria else {}
    with serve("openai_batches") as server:
        path = batches.experiment(
            tmp_path, server, batch, configurations=[configuration], metrics=["nDCG@5", *criteria], **more
        )
        pool = planned(path)
        paid = batches.usage(batches.evaluated(path, "r", monkeypatch))["cost"]
        assert server.stats().extra["jobs"] == jobs == pool["batch_steps"]
    least, most = pool["batch_cost"] or pool["cost"]
    assert least <= paid <= most
