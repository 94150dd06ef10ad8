"""A model that lies: each lie is caught by the stage that exists for it, and counted."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.goldens import corpus, documents, goldens_file, lines
from support.standin_models import KEY, service
from support.standins import Standin, serve
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


@pytest.fixture(scope="module")
def server() -> Iterator[Standin]:
    with serve("openai") as standin:
        yield standin


def made(folder: Path, server: Standin, lie: str | None, types: list[str]) -> Path:
    rows = documents(24)
    for number, row in enumerate(rows):
        row["text"] += f" lie={lie}." if lie is not None and number % 2 else ""
    rows[0]["text"] += f" {ELSEWHERE}"
    path = goldens_file(
        folder,
        documents=corpus(folder, rows),
        services={"model": service("openai", server)},
        writer="model",
        checker="model",
        items=12,
        types=types,
        reviews={"pool": 8, "closed_book": False},
        quotas={"openai": {"requests_per_minute": 60_000}},
    )
    outcome = rankbeam("goldens", path)
    assert outcome.status in (0, 3), outcome.stderr
    return folder / "out"


@pytest.mark.parametrize("lie", CAUGHT)
def test_the_stage_for_a_lie_catches_it(
    lie: str, server: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    types = ["unanswerable"] if lie in ("answered", "elsewhere") else ["lookup", "why"]
    out = made(tmp_path, server, lie, types)
    liars = {row["_id"] for row in lines(out / "corpus.jsonl") if "lie=" in row["text"]}
    is_lie = lambda row: row["spans"][0].partition("#")[0] in liars  # noqa: E731
    reasons = Counter(row["reason"] for row in lines(out / "rejected.jsonl") if is_lie(row))
    assert reasons[CAUGHT[lie]] > 0
    accepted = [item for item in lines(out / "items.jsonl") if is_lie(item["made"])]
    assert len(accepted) <= (lie == "duplicate")  # the first of its duplicates stays
    (stage,) = [row for row in json.loads((out / "coverage.json").read_text())["stages"] if row["stage"] == CAUGHT[lie]]
    assert stage["rejected"] >= reasons[CAUGHT[lie]]


def test_an_honest_model_meets_the_quotas_in_one_round(
    server: Standin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    out = made(tmp_path, server, None, ["lookup", "comparison", "unanswerable"])
    about = json.loads((out / "about.json").read_text())
    assert about["complete"]
    assert about["rounds"] == 1
    assert about["model_versions"] == {"model": ["model-1-v7"]}
