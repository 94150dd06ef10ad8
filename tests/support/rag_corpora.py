"""Experiments whose corpora a stand-in of RAG Engine builds, from documents in its Cloud Storage."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.emulators.services import write_credentials
from support.standins import Faults, Standin, serve

LOCATION = "projects/p/locations/us-central1"
BUCKET = "bucket"
STAGING = f"gs://{BUCKET}/rankbeam"
WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jade", "koala", "lotus")
FAST = 6000
"""Requests a minute to the data API, where a test is not about its pace."""


@contextmanager
def rag_engine(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    requests_per_minute: float = FAST,
    faults: Faults | None = None,
    **behaviour: Any,
) -> Iterator[Standin]:
    """RAG Engine and its Cloud Storage, to which the environment of this process leads.

    Args:
        folder: for a credentials file.
        monkeypatch: sets the environment.
        requests_per_minute: the quota of the data API; what is over it is refused.
        faults: faults of requests to the data API.
        behaviour: fields of `rag_state.Behaviour`.
    """
    quota = {"quota_per_minute": requests_per_minute, "enforce": True, "by_second": False}  # as Google counts it
    options: dict[str, Any] = {**quota, "faults": faults}
    with serve("rag_corpora", buckets=[BUCKET], rag=behaviour, **options) as server:
        storage = f"http://127.0.0.1:{server.stats().extra['storage_port']}"
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_credentials(folder, f"{storage}/token")))
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        yield server


def text(document: int) -> str:
    """The text of a document: some words that only a few documents share."""
    own = WORDS[document % len(WORDS)], WORDS[document // len(WORDS) % len(WORDS)]
    return " ".join([*own, f"number{document}", *(f"filler{document}x{position}" for position in range(30))])


def dataset(folder: Path, documents: int, queries: int = 3) -> dict[str, str]:
    """Documents, and queries that ask for the first ones; ids hold what no name of a file may."""
    ids = [f"kb/{document} ü%2F.txt" for document in range(documents)]
    rows = [{"_id": doc_id, "title": "a title", "text": text(document)} for document, doc_id in enumerate(ids)]
    questions = [{"_id": f"q{query}", "text": f"{WORDS[query % len(WORDS)]} number{query}"} for query in range(queries)]
    return {
        "corpus": _write(folder / "corpus.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows)),
        "queries": _write(folder / "queries.jsonl", "".join(f"{json.dumps(row)}\n" for row in questions)),
        "qrels": _write(
            folder / "qrels.tsv",
            "query-id\tcorpus-id\tscore\n" + "".join(f"q{query}\t{ids[query]}\t1\n" for query in range(queries)),
        ),
    }


def experiment(
    folder: Path,
    server: Standin,
    files: Mapping[str, str],
    *,
    corpus: Mapping[str, Any] | None = None,
    requests_per_minute: float = FAST,
    **more: Any,
) -> str:
    """Write an experiment with a corpus of RAG Engine's; returns its path.

    Args:
        folder: for it and its results.
        server: the stand-in.
        files: files of the dataset.
        corpus: parameters of the corpus besides those that every one needs; None takes a parameter away.
        requests_per_minute: the quota of the data API.
        more: keys of the experiment.
    """
    own = {
        "type": "rag_engine",
        "location": LOCATION,
        "staging": STAGING,
        "embedding_model": "text-embedding-005",
        "chunk_size": 16,
        "chunk_overlap": 4,
        "api_endpoint": server.url,
        **(corpus or {}),
    }
    content = {
        "name": "built",
        "dataset": dict(files),
        "corpora": {"kb": own},
        "configurations": [{"name": "rag", "retriever": {"type": "rag_engine", "corpus": "kb"}, "top_k": 10}],
        "quotas": {
            "rag_engine": {"requests_per_minute": FAST},
            "rag_engine_data": {"requests_per_minute": requests_per_minute},
        },
        "metrics": ["nDCG@10", "R@10"],
        "output": {"path": "out"},
        **more,
    }
    return _write(folder / "experiment.yaml", yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def _write(path: Path, content: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return str(path)
