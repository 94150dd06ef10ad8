"""Context found over the whole corpus and distilled: questions may rest on sentences of further documents."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.goldens import corpus, documents, goldens_file, lines, stable
from support.standin_models import KEY, service
from support.standins import Faults, serve

FINAL = ("safety", "truncated")


def keys(folder: Path, server: Any, **more: Any) -> dict[str, Any]:
    return {
        "documents": corpus(folder, documents(24)),
        "services": {"model": service("openai", server)},
        "writer": "model",
        "checker": "model",
        "items": 8,
        "types": ["lookup", "multi_hop"],
        "context": 2,
        "reviews": {"pool": 0, "closed_book": False},
        "quotas": {"openai": {"requests_per_minute": 60_000}},
        **more,
    }


def steps_of(out: Path) -> list[list[str]]:
    return [[call["step"] for call in row["calls"]] for row in lines(out / "provenance.jsonl")]


def test_questions_rest_on_sentences_of_further_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai") as server:
        planned = rankbeam("goldens", "plan", goldens_file(tmp_path, **keys(tmp_path, server)))
        outcome = rankbeam("goldens", goldens_file(tmp_path, **keys(tmp_path, server)))
    assert "distill: 16" in planned.stdout
    assert outcome.status == 0, outcome.stderr
    out = tmp_path / "out"
    assert all(steps.count("distill") == 2 for steps in steps_of(out))
    spans = {
        row["query_id"]: {name.rpartition("#")[0] for name in row["spans"]} for row in lines(out / "provenance.jsonl")
    }
    resting: dict[str, set[str]] = {}
    texts = {row["_id"]: row["text"] for row in lines(out / "corpus.jsonl")}
    for piece in lines(out / "evidence.jsonl"):
        assert texts[piece["doc_id"]][piece["start"] : piece["end"]] == piece["quote"]
        resting.setdefault(piece["query_id"], set()).add(piece["doc_id"])
    assert all(spans[query] <= sentences for query, sentences in resting.items())
    assert any(sentences - spans[query] for query, sentences in resting.items())
    assert json.loads((out / "about.json").read_text())["context"] == 2


@pytest.mark.campaign
def test_a_passage_that_a_model_refuses_adds_no_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    with serve("openai", faults=Faults(contents=0.2, content_kinds=FINAL)) as server:
        outcome = rankbeam("goldens", goldens_file(tmp_path, **keys(tmp_path, server)))
    assert outcome.status in (0, 3), outcome.stderr
    assert any(steps.count("distill") < 2 for steps in steps_of(tmp_path / "out"))


def test_a_model_without_language_distills_by_words(tmp_path: Path) -> None:
    path = goldens_file(tmp_path, context=2, items=6, reviews={"pool": 0})
    outcome = rankbeam("goldens", path)
    assert outcome.status == 0, outcome.stderr
    before = stable(tmp_path / "out")
    assert "(0 calls, " in rankbeam("goldens", path).stdout
    assert stable(tmp_path / "out") == before
    questions = [row["text"] for row in lines(tmp_path / "out" / "queries.jsonl")]
    assert not any("further document" in question for question in questions)
