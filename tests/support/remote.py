"""Experiments that ask a stand-in of a remote service, and commands that are killed while they do."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import yaml
from support import inputs, processes
from support.standins import Standin

DOCUMENTS = 60
DEPTH = 20


def answers(queries: int) -> dict[str, list[dict[str, Any]]]:
    """The service's results for every query, best first; scores are distances, all different."""
    return {
        f"question {query}": [
            {
                "id": f"doc-{(query * 7 + rank * 11) % DOCUMENTS}",
                "score": round(0.1 + 0.02 * rank + 0.0001 * query, 6),
                "text": f"said {query} {rank}",
            }
            for rank in range(DEPTH)
        ]
        for query in range(queries)
    }


def dataset(folder: Path, queries: int) -> dict[str, str]:
    """Queries and judgements; of every query's answer every third document is relevant."""
    texts = [
        {"_id": f"q{query}", "text": f"question {query}", "metadata": {"language": ("en", "fr")[query % 2]}}
        for query in range(queries)
    ]
    judged = [
        (f"q{query}", answer["id"], float(rank % 3 == query % 3) + float(rank == query % 5))
        for query, (_, documents) in enumerate(answers(queries).items())
        for rank, answer in enumerate(documents)
    ]
    return {
        "queries": inputs.write(folder / "queries.jsonl", "".join(json.dumps(text) + "\n" for text in texts)),
        "qrels": inputs.write(folder / "qrels.trec", inputs.trec_qrels(judged)),
    }


def run_file(folder: Path, queries: int) -> str:
    """The same answers as a TREC run: nearest first, so scores are negated."""
    rows = [
        (f"q{query}", answer["id"], -answer["score"])
        for query, documents in enumerate(answers(queries).values())
        for answer in documents
    ]
    return inputs.write(folder / "same.run", inputs.trec_run(rows))


def rag(server: Standin, **parameters: Any) -> dict[str, Any]:
    """A RAG Engine retriever that asks the stand-in."""
    corpus = "projects/p/locations/us-central1/ragCorpora/42"
    return {"type": "rag_engine", "corpus": corpus, "api_endpoint": server.url, **parameters}


def http(server: Standin, **parameters: Any) -> dict[str, Any]:
    """An HTTP retriever that asks the stand-in."""
    lies = {"results": "hits.hits", "id": "_id", "score": "_score", "text": "_source.text"}
    return {"type": "http", "url": f"{server.url}/search", **lies, **parameters}


def write_experiment(folder: Path, experiment: Mapping[str, Any]) -> str:
    """Write an experiment; returns its path."""
    base = {"name": "remote", "metrics": ["nDCG@10", "P@5", "R@20"], "output": {"path": "out"}}
    path = folder / "experiment.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({**base, **experiment}, sort_keys=False), encoding="utf-8")
    return str(path)


@dataclass(frozen=True)
class Ended:
    """The outcome of a command that received a signal."""

    status: int
    stderr: str


def signalled(
    arguments: list[str],
    number: signal.Signals,
    when: Callable[[], bool],
    cwd: Path,
    every_s: float = 0.02,
    within_s: float = 120.0,
) -> Ended:
    """Run a command in a process of its own, and send it a signal as soon as something is so."""
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with processes.Process(processes.COMMAND, *arguments, cwd=cwd, **streams) as process:
        deadline = time.monotonic() + within_s
        while not when():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(every_s)
        os.kill(process.pid, number)
        _, stderr = process.communicate(timeout=60)
        return Ended(process.returncode, stderr)


def failure_rows(output: Path, run_id: str) -> list[dict[str, Any]]:
    """The rows of `failures` of one run."""
    rows: list[dict[str, Any]] = ds.dataset(output / "failures" / run_id, format="parquet").to_table().to_pylist()
    return rows
