"""Experiments in which a stand-in of a model answers and judges, over a few documents of their own."""

import json
from pathlib import Path
from typing import Any

import yaml
from support import inputs
from support.cli import rankbeam
from support.standins import Standin

from rankbeam.pipelines.results.run import Results

QUERIES = 12
_TOPICS = ("tides", "glass", "bees", "maps", "salt", "trains", "paper", "clocks")


def dataset(folder: Path, queries: int = QUERIES) -> dict[str, str]:
    """Queries with reference answers of two sentences, judgements and a corpus, all about a few topics."""
    texts = [
        {
            "_id": f"q{number}",
            "text": f"what of {_TOPICS[number % len(_TOPICS)]} {number}",
            "metadata": {"answer": f"First {number} is so. Then {_TOPICS[number % len(_TOPICS)]} follow."},
        }
        for number in range(queries)
    ]
    documents = [
        {"_id": f"d{number}", "text": f"All of {topic} and {_TOPICS[(number + 3) % len(_TOPICS)]}, part {number}."}
        for number, topic in enumerate(_TOPICS * 3)
    ]
    judged = [(f"q{number}", f"d{number % len(_TOPICS)}", 1.0) for number in range(queries)]
    lines = lambda rows: "".join(json.dumps(row) + "\n" for row in rows)  # noqa: E731
    return {
        "queries": inputs.write(folder / "queries.jsonl", lines(texts)),
        "corpus": inputs.write(folder / "corpus.jsonl", lines(documents)),
        "qrels": inputs.write(folder / "qrels.trec", inputs.trec_qrels(judged)),
        "answers": "answer",
    }


def model(server: Standin, kind: str, **parameters: Any) -> dict[str, Any]:
    """A model of the service that a stand-in replaces."""
    place = {"base_url": f"{server.url}/v1"} if kind == "openai" else {"api_endpoint": server.url}
    if kind == "vertex":
        return {"type": "gemini", "model": "m-001", "project": "p", "location": "us-central1", **place, **parameters}
    return {"type": kind, "model": "m-001", "api_key": "${env:RANKBEAM_TEST_KEY}", **place, **parameters}


def write_experiment(
    folder: Path, service: dict[str, Any], quota: dict[str, Any], queries: int = QUERIES, **more: Any
) -> str:
    """Write an experiment with one model, which answers from three contexts and judges; returns its path."""
    experiment = {
        "name": "answering",
        "dataset": dataset(folder, queries),
        "services": {"m": service},
        "quotas": {"m": {"requests_per_minute": 60_000, **quota}},
        "configurations": [
            {"name": "rag", "retriever": {"type": "bm25"}, "top_k": 5, "generate": {"service": "m", "contexts": 3}}
        ],
        "judge": {"service": "m", "repeat_share": 0},
        "metrics": ["nDCG@5", "Faithfulness"],
        "output": {"path": "out"},
    } | more
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
    return str(path)


def cost(folder: Path, run_id: str) -> float:
    """The cost of a run, from its table."""
    return sum(row["cost"] or 0.0 for row in Results(str(folder / "out"), run_id).table("usage").to_pylist())


def planned(path: str) -> dict[str, Any]:
    """The one pool of models of a plan."""
    outcome = rankbeam("plan", path, "--format", "json")
    assert outcome.status == 0, outcome.stderr
    (pool,) = json.loads(outcome.stdout)["models"]
    return dict(pool)
