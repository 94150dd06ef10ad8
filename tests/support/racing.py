"""Experiments in which stand-ins of retrievers race: how good each of them is follows from a table."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.inputs import trec_qrels, write
from support.remote import http, write_experiment
from support.standins import Standin, serve

QUERIES, LOOKS = 120, [30, 60]
FIRST = {"best": (1, 2), "equal": (2, 1), "worse": (2, 3), "worst": (6, 9)}
"""For each system the ranks of the relevant document, at even and at odd queries."""
RACE = {"race": {"metric": "MRR", "alpha": 0.1, "looks": LOOKS}}


def answers(name: str) -> dict[str, list[dict[str, Any]]]:
    """The results of a system for every query; only the relevant document agrees with the reference answer."""
    replies = {}
    for query in range(QUERIES):
        rank = FIRST[name][query % 2] + (query % 7 == 0)
        ids = [f"d{query}" if place == rank else f"x{query}-{place}" for place in range(1, 12)]
        replies[f"question {query}"] = [
            {"id": doc_id, "score": 20.0 - place, "text": f"shelf {query}" if doc_id[0] == "d" else "an empty room"}
            for place, doc_id in enumerate(ids)
        ]
    return replies


@contextlib.contextmanager
def systems(*names: str) -> Iterator[dict[str, Standin]]:
    """Stand-ins of systems, by name."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(serve("http", answers=answers(name))) for name in names}


def experiment(folder: Path, servers: dict[str, Standin], **also: Any) -> str:
    """Write an experiment that compares systems; returns its path."""
    folder.mkdir(exist_ok=True)
    queries = [
        {"_id": f"q{query}", "text": f"question {query}", "metadata": {"answer": f"shelf {query}."}}
        for query in range(QUERIES)
    ]
    judged = [(f"q{query}", f"d{query}", 1.0) for query in range(QUERIES)]
    settings = {
        "dataset": {
            "queries": write(folder / "queries.jsonl", "".join(json.dumps(query) + "\n" for query in queries)),
            "qrels": write(folder / "qrels", trec_qrels(judged)),
        },
        "configurations": [{"name": name, "retriever": http(server), "top_k": 10} for name, server in servers.items()],
        "metrics": ["RR", "nDCG@10"],
        "quotas": {"http": {"requests_per_minute": 60_000}},
        **also,
    }
    return write_experiment(folder, settings)


def calls(servers: dict[str, Standin]) -> dict[str, int]:
    """The number of calls to each system."""
    return {name: server.stats().calls for name, server in servers.items()}
