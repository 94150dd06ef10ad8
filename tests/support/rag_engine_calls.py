"""Calls of RAG Engine without a run."""

from typing import Any

from rankbeam.transforms.clients.retrievers.rag_engine import RagEngine

CORPUS = "projects/p/locations/us-central1/ragCorpora/42"


def retriever(**parameters: Any) -> RagEngine:
    return RagEngine(**{"corpus": CORPUS, **parameters})
