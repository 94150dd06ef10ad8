"""Experiments in which models answer and judge, over a made-up collection: counts can be worked out by hand."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from support.inputs import trec_qrels, trec_run, write
from support.standins import Standin

from rankbeam.pipelines.results.run import Results

KEY = "STANDIN_KEY"
"""The environment variable that holds the key of the stand-ins."""

_OF_THE_RUN = ("run_id", "started_at")


def dataset(folder: Path, queries: int, documents: int) -> dict[str, str]:
    """Queries with reference answers of two sentences, judgements, and a corpus of short texts."""
    texts = [
        {"_id": f"q{n}", "text": f"question {n}", "metadata": {"answer": f"It is {n}. It lies on shelf {n % 7}."}}
        for n in range(queries)
    ]
    corpus = [
        {"_id": f"d{n}", "text": f"Shelf {n} is made of oak. It carries {n % 13} boxes."} for n in range(documents)
    ]
    judged = [(f"q{n}", f"d{n % documents}", 1.0) for n in range(queries)]
    return {
        "queries": write(folder / "queries.jsonl", "".join(json.dumps(text) + "\n" for text in texts)),
        "corpus": write(folder / "corpus.jsonl", "".join(json.dumps(text) + "\n" for text in corpus)),
        "qrels": write(folder / "qrels.trec", trec_qrels(judged)),
        "answers": "answer",
    }


def run_file(folder: Path, name: str, rankings: Sequence[Sequence[int]]) -> dict[str, str]:
    """A retriever that reads rankings: for each query the numbers of its documents, best first."""
    rows = [
        (f"q{n}", f"d{document}", -float(rank))
        for n, documents in enumerate(rankings)
        for rank, document in enumerate(documents)
    ]
    return {"type": "run_file", "path": write(folder / f"{name}.run", trec_run(rows))}


def service(kind: str, server: Standin) -> dict[str, str]:
    """A model behind a stand-in."""
    address = {"api_endpoint": server.url} if kind == "gemini" else {"base_url": f"{server.url}/v1"}
    return {"type": kind, "model": "model-1", "api_key": f"${{env:{KEY}}}", **address}


def write_experiment(folder: Path, experiment: Mapping[str, Any], name: str = "experiment") -> str:
    """Write an experiment whose only service, `model`, judges; returns the path, whose file has a name."""
    base = {"name": "answered", "judge": {"service": "model"}, "output": {"path": "out"}}
    return write(folder / f"{name}.yaml", yaml.safe_dump({**base, **experiment}, sort_keys=False))


def rows(results: Results, table: str, without: Sequence[str] = ()) -> list[str]:
    """The rows of a table, in one order, as exact text without the columns that differ from run to run."""
    rows: pa.Table = results.table(table)
    names = [name for name in rows.column_names if name not in (*_OF_THE_RUN, *without)]
    return sorted(json.dumps(row, sort_keys=True, default=repr) for row in rows.select(names).to_pylist())
