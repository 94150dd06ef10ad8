"""Pools of several retrievers, in process and services, and duplicates by embeddings, through the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.cli import rankbeam
from support.goldens import corpus, documents, goldens_file, lines, stable
from support.remote import http
from support.standin_models import KEY, service
from support.standins import Faults, serve

PASSING = Faults(rate=0.1, kinds=("unavailable",))


def generated(folder: Path, name: str = "goldens", **keys: Any) -> Any:
    return rankbeam("goldens", goldens_file(folder, name, **{"items": 6, "types": ["lookup"], **keys}))


def pooled(out: Path) -> dict[str, set[str]]:
    """By question, the documents that were graded besides its own."""
    return {row["query_id"]: {one["doc_id"] for one in row["pool"]} for row in lines(out / "provenance.jsonl")}


@pytest.mark.campaign
def test_all_retrievers_of_a_pool_find_documents_in_turn(tmp_path: Path) -> None:
    for name, retrievers in {"both": ["bm25", "lsa"], "one": ["bm25"], "other": [{"type": "lsa"}]}.items():
        outcome = generated(tmp_path, name, reviews={"pool": {"documents": 6, "retrievers": retrievers}}, output=name)
        assert outcome.status == 0, outcome.stderr
    both, one, other = (pooled(tmp_path / name) for name in ("both", "one", "other"))
    assert both.keys() == one.keys() == other.keys()
    assert one != other
    for query, doc_ids in both.items():
        assert len(doc_ids) <= 6
        assert doc_ids & one[query]
        assert doc_ids & other[query]
        assert doc_ids <= one[query] | other[query]
    about = json.loads((tmp_path / "both" / "about.json").read_text())
    assert [retriever["type"] for retriever in about["pool_retrievers"]] == ["bm25", "lsa"]


@pytest.mark.campaign
def test_services_and_embeddings_are_sources_of_a_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "not a secret")
    names = [row["_id"] for row in documents(24)]
    with (
        serve("http", documents=[*names, "elsewhere"], faults=PASSING) as searched,
        serve("openai", faults=PASSING) as models,
    ):
        keys: dict[str, Any] = {
            "services": {
                "sentences": {"type": "extractive"},
                "words": {"type": "lexical"},
                "vectors": service("openai", models),
            },
            "reviews": {
                "pool": {
                    "documents": 9,
                    "retrievers": ["bm25", http(searched), {"type": "dense", "embedding_model": "vectors"}],
                }
            },
            "quotas": {"http": {"requests_per_minute": 6000}, "openai": {"requests_per_minute": 60_000}},
        }
        planned = rankbeam("goldens", "plan", goldens_file(tmp_path, items=6, types=["lookup"], **keys))
        assert "search: 6 calls" in planned.stdout
        assert "embed: 30 calls" in planned.stdout
        outcome = generated(tmp_path, **keys)
        assert outcome.status == 0, outcome.stderr
        assert "http returns 1 id of no document: elsewhere" in outcome.stderr
        calls = (searched.stats().calls, models.stats().calls)
        assert min(calls) > 0
        before = stable(tmp_path / "out")
        assert "(0 calls, " in generated(tmp_path, **keys).stdout
        assert (searched.stats().calls, models.stats().calls) == calls
        assert stable(tmp_path / "out") == before
    plain = generated(tmp_path, "plain", reviews={"pool": 9}, output="plain")
    assert plain.status == 0
    assert pooled(tmp_path / "out") != pooled(tmp_path / "plain")


def test_questions_of_like_embeddings_are_duplicates(tmp_path: Path) -> None:
    services = {
        "sentences": {"type": "extractive"},
        "words": {"type": "lexical"},
        "vectors": {"type": "hashed", "dimensions": 64},
    }
    rows = documents(12)
    for number, row in enumerate(rows):  # the same words in another order: other 5-grams, and one set of stems
        words = [f"{word}{letter}ish" for word in ("amber", "basil", "cedar") for letter in "abc"]
        row["text"] = " ".join(words[number % 9 :] + words[: number % 9] + ["counted", f"n{number}n", "daily."])
    reviews: dict[str, Any] = {"pool": 0, "closed_book": False}
    keys = {"documents": corpus(tmp_path, rows), "services": services, "items": 6}
    plain = generated(tmp_path, "plain", **keys, reviews=reviews, output="plain")
    assert plain.status in (0, 3)
    items = lines(tmp_path / "plain" / "items.jsonl")
    strict = {**reviews, "duplicates": {"embedding_model": "vectors", "cosine": 0.5}}
    outcome = generated(tmp_path, "strict", **keys, reviews=strict, output="strict")
    assert outcome.status == 3, outcome.stderr
    reasons = {row["reason"] for row in lines(tmp_path / "strict" / "rejected.jsonl")}
    assert "duplicate" in reasons
    assert 0 < len(lines(tmp_path / "strict" / "items.jsonl")) < len(items)


@pytest.mark.parametrize(
    ("reviews", "problem"),
    [
        ({"pool": {"retrievers": ["bm52"]}}, "reviews.pool.retrievers[0]: unknown retriever type 'bm52'"),
        ({"pool": {"retrievers": [{"type": "run_file", "path": "a.run"}]}}, "has no ranking for new questions"),
        ({"pool": {"retrievers": [{"type": "lsa", "dimensions": 3}]}}, "did you mean 'dimension'?"),
        ({"pool": {"retrievers": [{"type": "dense", "embedding_model": "vektors"}]}}, "services: has no 'vektors'"),
        ({"pool": {"retrievers": ["rag_engine"]}}, "reviews.pool.retrievers[0].corpus: is missing; give the full name"),
        ({"duplicates": "vektors"}, "reviews.duplicates: services: has no 'vektors'"),
    ],
)
def test_wrong_retrievers_and_models_are_refused_with_their_line(
    reviews: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    outcome = generated(tmp_path, reviews=reviews)
    assert outcome.status == 2
    assert problem in outcome.stderr
    assert "goldens.yaml:" in outcome.stderr
