"""Keys of calls in a ledger: they must outlive versions of rankbeam, and differ where answers do."""

import pytest

from rankbeam.transforms.clients.retrievers.base import RemoteRetriever
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.clients.retrievers.rag_engine import RagEngine
from rankbeam.transforms.clients.retrievers.vertex_search import VertexSearch
from rankbeam.transforms.records.calls.steps import SearchDepth

# Answers were paid for under these names. Who changes one makes every user pay again.
KEYS = {
    "rag_engine": "c9770a1013edb35a4ddc4a636e63ab59",
    "vertex_search": "41369ae9c8b65e8f3d788e838dc72aad",
    "http": "3cc6a116affca261e0e3b4aeee1174ef",
}
CORPUS = "projects/p/locations/l/ragCorpora/c"
RETRIEVERS = {
    "rag_engine": RagEngine(corpus=CORPUS),
    "vertex_search": VertexSearch(serving_config="projects/p/locations/l/collections/c/engines/e/servingConfigs/s"),
    "http": Http(url="https://search.example/q", results="hits", id="id"),
}


def key(
    retriever: RemoteRetriever, kind: str = "rag_engine", text: str = "who?", depth: SearchDepth | None = None
) -> str:
    return retriever.keys(kind, [text], depth or SearchDepth(10))[0]


@pytest.mark.parametrize("kind", KEYS)
def test_keys_outlive_versions(kind: str) -> None:
    assert key(RETRIEVERS[kind], kind) == KEYS[kind]


def test_what_decides_an_answer_decides_the_key() -> None:
    others = [
        key(RagEngine(corpus=CORPUS), text="when?"),
        key(RagEngine(corpus=f"{CORPUS}2")),
        key(RagEngine(corpus=CORPUS, version="2")),
        key(RagEngine(corpus=CORPUS, metadata_filter="x")),
        key(RagEngine(corpus=CORPUS, rag_file_ids=("1",))),
        key(RagEngine(corpus=CORPUS, vector_similarity_threshold=0.5)),
        key(RagEngine(corpus=CORPUS, rank_service="r")),
        key(RagEngine(corpus=CORPUS, llm_ranker="r")),
        key(RagEngine(corpus=CORPUS, api_endpoint="http://127.0.0.1:1")),
        key(RagEngine(corpus=CORPUS), kind="http"),
    ]
    assert len({KEYS["rag_engine"], *others}) == len(others) + 1


def test_what_does_not_decide_it_does_not() -> None:
    same = [
        key(RagEngine(corpus=CORPUS, quota="mine")),
        key(RagEngine(corpus=CORPUS, lower_is_better=False)),
        key(RagEngine.model_validate({"corpus": CORPUS, "doc_id": {"field": "chunk"}})),
        key(RagEngine(corpus=CORPUS), depth=SearchDepth(100, 0.5)),
    ]
    assert set(same) == {KEYS["rag_engine"]}


def test_a_reranker_sees_what_was_retrieved_so_every_reach_is_a_call_of_its_own() -> None:
    reranked = RagEngine(corpus=CORPUS, rank_service="r")
    assert len({key(reranked, depth=depth) for depth in (SearchDepth(5), SearchDepth(10), SearchDepth(10, 0.5))}) == 3
