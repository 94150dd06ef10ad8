"""A model that lies: each lie is caught by the stage that exists for it, and counted."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.goldens import corpus, documents, goldens_file, lines
from support.standin_models import KEY, service
from support.standins import serve
from support.standins.goldens import ELSEWHERE

CAUGHT = {
    "quotes": "no_facts",
    "outside": "checks",
    "leak": "leak",
    "duplicate": "duplicate",
    "answered": "checks",
    "elsewhere": "answered_elsewhere",
}
"""By lie, the stage that rejects it."""
OF_UNANSWERABLE = ("answered", "elsewhere")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark of documents of which each but every seventh makes the model lie in one way."""
    folder = tmp_path_factory.mktemp("lies")
    lies = [None, *CAUGHT]
    rows = documents(42)
    for number, row in enumerate(rows):
        lie = lies[number % len(lies)]
        row["text"] += f" lie={lie}." if lie is not None else ""
    rows[0]["text"] += f" {ELSEWHERE}"
    with serve("openai") as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY, "not a secret")
        path = goldens_file(
            folder,
            documents=corpus(folder, rows),
            services={"model": service("openai", server)},
            writer="model",
            checker="model",
            items=28,
            types=["lookup", "unanswerable"],
            reviews={"pool": 12, "closed_book": False},
            quotas={"openai": {"requests_per_minute": 60_000}},
        )
        outcome = rankbeam("goldens", path)
    assert outcome.status in (0, 3), outcome.stderr
    return folder / "out"


def lies_in(out: Path) -> dict[str, str]:
    """By document, how the model lies about it; empty where it does not."""
    texts = {row["_id"]: row["text"] for row in lines(out / "corpus.jsonl")}
    return {name: text.partition("lie=")[2].partition(".")[0].split(" ")[0] for name, text in texts.items()}


@pytest.mark.campaign
@pytest.mark.parametrize("lie", CAUGHT)
def test_the_stage_for_a_lie_catches_it(lie: str, out: Path) -> None:
    lies = lies_in(out)

    def is_lie(origin: dict[str, Any]) -> bool:
        is_of_kind = (origin["type"] == "unanswerable") == (lie in OF_UNANSWERABLE)
        return is_of_kind and lies[origin["spans"][0].rpartition("#")[0]] == lie

    rejected = Counter(row["reason"] for row in lines(out / "rejected.jsonl") if is_lie(row))
    assert rejected[CAUGHT[lie]] > 0
    accepted = [item for item in lines(out / "items.jsonl") if is_lie(item["made"])]
    assert len(accepted) <= (lie == "duplicate")  # the first of its duplicates stays
    stages = json.loads((out / "coverage.json").read_text())["stages"]
    (stage,) = [row for row in stages if row["stage"] == CAUGHT[lie]]
    assert stage["rejected"] >= rejected[CAUGHT[lie]]


def test_what_is_true_is_accepted_and_every_call_is_on_record(out: Path) -> None:
    lies = lies_in(out)
    rejected = [row for row in lines(out / "rejected.jsonl") if not lies[row["spans"][0].rpartition("#")[0]]]
    assert {row["reason"] for row in rejected} <= {"surplus"}
    assert json.loads((out / "about.json").read_text())["model_versions"] == {"model": ["model-1-v7"]}
    prompts = json.loads((out / "about.json").read_text())["prompts"]
    for row in lines(out / "provenance.jsonl"):
        assert all(call["prompt"] == prompts[call["step"]] and call["content_key"] for call in row["calls"])
    costs = {row["query_id"]: row["tokens"] for row in lines(out / "costs.jsonl")}
    assert costs.keys() == {row["_id"] for row in lines(out / "queries.jsonl")}
    assert all(tokens["input"] > 0 < tokens["output"] for tokens in costs.values())


def test_tokens_of_a_call_are_found_by_the_key_that_provenance_names(out: Path) -> None:
    paid = {row["query_id"]: row for row in lines(out / "costs.jsonl")}
    for row in lines(out / "provenance.jsonl"):
        own = paid[row["query_id"]]
        by_key = {one["content_key"]: one for one in own["by_call"]}
        assert {call["content_key"]: call["step"] for call in row["calls"]}.items() <= {
            key: one["step"] for key, one in by_key.items()
        }.items()
        assert own["calls"] == len(own["by_call"]) == len(row["calls"]) + len(row["pool"])
        for name in ("input", "output"):
            assert own["tokens"][name] == sum(one["tokens"][name] for one in own["by_call"])
