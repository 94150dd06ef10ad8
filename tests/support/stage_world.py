"""A small collection with words that repeat, and its rankings: for tests of reranking and rewriting."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from support import inputs, runs
from support.cli import Outcome, rankbeam

from rankbeam.pipelines.results.run import Results

WORDS = ("owner", "invoice", "snow", "winter", "paper", "green", "home", "pay", "date", "store")
Rankings = dict[str, dict[str, list[tuple[str, float | None]]]]
"""By configuration and query, ids and scores, best first."""


def texts(documents: int = 30) -> dict[str, str]:
    """Documents by id; two of them have no text."""
    chance = random.Random(7)
    built = {f"d{number}": " ".join(chance.choices(WORDS, k=9)) for number in range(documents)}
    return {**built, "d3": "", "d4": "  "}


def questions(queries: int = 8) -> dict[str, str]:
    """Queries by id."""
    chance = random.Random(11)
    return {f"q{number}": f"{' '.join(chance.sample(WORDS, 3))} {number}" for number in range(queries)}


def dataset(folder: Path) -> dict[str, str]:
    """Queries, judgements and documents."""
    corpus = [
        {"_id": name, "title": "snow" if name in ("d3", "d4") else "", "text": text} for name, text in texts().items()
    ]
    queries = [{"_id": name, "text": text} for name, text in questions().items()]
    judged = [
        (query, f"d{(place * 5 + step) % 30}", 1.0) for place, query in enumerate(questions()) for step in range(6)
    ]
    files = {"corpus": corpus, "queries": queries}
    written = {
        name: inputs.write(folder / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        for name, rows in files.items()
    }
    return {**written, "qrels": inputs.write(folder / "qrels.trec", inputs.trec_qrels(judged))}


def experiment(folder: Path, name: str = "experiment", **parts: Any) -> str:
    """An experiment file over the collection, which keeps all rankings."""
    folder.mkdir(parents=True, exist_ok=True)
    base = {
        "name": "stages",
        "dataset": dataset(folder),
        "metrics": ["nDCG@5", "R@10"],
        "output": {"path": "out", "rankings": True},
        "statistics": {"replicates": 100},
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**base, **parts}, sort_keys=False), encoding="utf-8")
    return str(path)


def evaluated(path: str, run_id: str = "r1") -> Results:
    """Run an experiment, and make nothing of its tables."""
    return runs.evaluated(path, run_id)


def outcome_of(path: str, run_id: str = "r1", status: int = 0) -> Outcome:
    """Run an experiment as a user does."""
    outcome = rankbeam("evaluate", path, "--run-id", run_id)
    assert outcome.status == status, outcome.stderr
    return outcome


def results(path: str, run_id: str = "r1") -> Results:
    """The results beside an experiment file."""
    return Results(str(Path(path).parent / "out"), run_id)


def rankings(path: str, run_id: str = "r1") -> Rankings:
    """All rankings of a run."""
    run = results(path, run_id)
    names = {row["config_id"]: row["name"] for row in run.configurations}
    built: Rankings = {name: {} for name in names.values()}
    for row in run.table("rankings").to_pylist():
        built[names[row["config_id"]]][row["query_id"]] = [(hit["doc_id"], hit["score"]) for hit in row["documents"]]
    return built


def ids(ranking: Mapping[str, list[tuple[str, float | None]]]) -> dict[str, list[str]]:
    """The ids of one configuration's rankings."""
    return {query: [name for name, _ in hits] for query, hits in ranking.items()}
