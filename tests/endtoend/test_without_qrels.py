"""A dataset of documents, questions and reference answers, without judgements: judged metrics alone, offline."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from support.cli import rankbeam

DOCUMENTS = {"owners": "Owners pay the invoices.", "weather": "It rains in spring.", "mail": "Mail comes at noon."}
QUERIES = [("q1", "Who pays the invoices?", "Owners pay the invoices."), ("q2", "When is rain?", "It rains in spring.")]
METRICS = ["faithfulness", "context_recall", "ClaimRecall"]


@pytest.fixture
def experiment(tmp_path: Path) -> dict[str, Any]:
    corpus = [{"_id": name, "title": "Leaflet", "text": text} for name, text in DOCUMENTS.items()]
    queries = [{"_id": name, "text": text, "metadata": {"answer": answer}} for name, text, answer in QUERIES]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "name": "no-qrels",
        "dataset": {"queries": "queries.jsonl", "corpus": "corpus.jsonl", "answers": "answer"},
        "services": {"reader": {"type": "extractive"}, "overlap": {"type": "lexical"}},
        "configurations": [
            {"name": "first", "retriever": {"type": "bm25"}, "top_k": 2, "generate": {"service": "reader"}},
            {"name": "none", "retriever": {"type": "bm25", "fields": ["title"]}, "top_k": 2,
             "generate": {"service": "reader"}},
        ],
        "judge": {"service": "overlap"},
        "metrics": METRICS,
        "output": {"path": "out"},
    }  # fmt: skip


@pytest.mark.long
def test_judged_metrics_need_no_judgements_of_documents(experiment: dict[str, Any], tmp_path: Path) -> None:
    outcome = evaluated(experiment, tmp_path)
    assert outcome.status == 0, outcome.stderr
    assert "without judgements" not in outcome.stderr
    assert "faithfulness is Faithfulness here: a claim counts if one context supports it" in outcome.stderr
    assert means(tmp_path) == {
        ("first", "ClaimRecall(judge=lexical)"): 1.0,
        ("first", "ContextRecall(judge=lexical)"): 1.0,
        ("first", "Faithfulness(judge=lexical)"): 1.0,
        ("none", "ClaimRecall(judge=lexical)"): 0.0,
        ("none", "ContextRecall(judge=lexical)"): 0.0,
        ("none", "Faithfulness(judge=lexical)"): None,
    }


def test_a_metric_of_rankings_needs_them(experiment: dict[str, Any], tmp_path: Path) -> None:
    outcome = evaluated({**experiment, "metrics": ["nDCG@10", "AP", *METRICS]}, tmp_path)
    assert outcome.status == 2
    assert "dataset.qrels: is missing; nDCG@10, AP need judgements" in outcome.stderr


def evaluated(experiment: dict[str, Any], folder: Path) -> Any:
    (folder / "experiment.yaml").write_text(yaml.safe_dump(experiment, sort_keys=False))
    return rankbeam("evaluate", str(folder / "experiment.yaml"))


def means(folder: Path) -> dict[tuple[str, str], float | None]:
    query = (
        "SELECT name, metric, mean FROM configuration_metrics JOIN configurations USING (config_id) WHERE slice = 'all'"
    )
    with duckdb.connect(str(folder / "out" / "results.duckdb"), read_only=True) as results:
        rows = results.sql(query).fetchall()
    return {(name, metric): mean for name, metric, mean in sorted(rows)}
