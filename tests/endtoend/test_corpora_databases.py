"""Vector databases of RAG Engine's corpora, as they reach a service that speaks its protocol."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import rag_corpora as rag
from support.campaigns import in_campaigns
from support.cli import Outcome, rankbeam
from support.standins import Standin

from rankbeam.transforms.clients.corpora.rag_engine.parameters import RagEngineCorpus

INDEX, ENDPOINT = (f"projects/p/locations/us-central1/{kind}/7" for kind in ("indexes", "indexEndpoints"))
KEY_NAME = "projects/p/secrets/pinecone/versions/3"
SEARCH = {"type": "vertex_vector_search", "index": INDEX, "index_endpoint": ENDPOINT}
PINECONE = {"type": "pinecone", "index_name": "kb", "api_key_secret_version": KEY_NAME}
SENT: dict[str, tuple[Any, dict[str, Any], bool]] = {
    "knn": ({"type": "knn"}, {"rag_managed_db": {"knn": {}}}, False),
    "ann": ("ann", {"rag_managed_db": {"ann": {}}}, True),
    "tree": (
        {"type": "ann", "tree_depth": 3, "leaf_count": 900},
        {"rag_managed_db": {"ann": {"tree_depth": 3, "leaf_count": 900}}},
        True,
    ),
    "search": (SEARCH, {"vertex_vector_search": {"index": INDEX, "index_endpoint": ENDPOINT}}, False),
    "pinecone": (
        PINECONE,
        {
            "pinecone": {"index_name": "kb"},
            "api_auth": {"api_key_config": {"api_key_secret_version": KEY_NAME}},
        },
        False,
    ),
}
REFUSED = {
    "weaviate": ({"type": "weaviate"}, "the API of RAG Engine that rankbeam calls (v1) has no Weaviate"),
    "beta": (
        {"type": "rag_managed_vertex_vector_search", "collection_name": "c"},
        "the API of RAG Engine that rankbeam calls (v1) has no managed Vector Search",
    ),
    "depth": ({"type": "ann", "tree_depth": 4}, "tree_depth: must be 2 or 3, found 4"),
    "key": ({"type": "pinecone", "index_name": "kb"}, "api_key_secret_version: is missing"),
    "resource": ({**SEARCH, "index": "7"}, "index: must have the form projects/P/locations/L/indexes/I, found"),
    "unknown": ({"type": "faiss"}, "valid are: knn, ann, vertex_vector_search, pinecone"),
    "parameters": ({"type": "knn", "leaf_count": 5}, "valid are: knn, ann, vertex_vector_search, pinecone"),
}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    with rag.rag_engine(tmp_path, monkeypatch) as server:
        yield server


def evaluate(folder: Path, server: Standin, database: Any, **more: Any) -> Outcome:
    path = rag.experiment(folder, server, rag.dataset(folder, 5), corpus={"database": database}, **more)
    return rankbeam("evaluate", path)


def specification(database: Any) -> dict[str, Any]:
    required = {"location": rag.LOCATION, "staging": rag.STAGING, "embedding_model": "m"}
    return RagEngineCorpus(**required, database=database).specification()


@pytest.mark.long
@pytest.mark.parametrize("case", ["tree", *in_campaigns("knn", "ann", "search", "pinecone")])
def test_the_service_is_told_the_database_and_when_to_build_a_tree(case: str, tmp_path: Path, server: Standin) -> None:
    database, sent, is_rebuilt = SENT[case]
    done = evaluate(tmp_path, server, database)
    shown = server.stats().extra
    assert done.status == 0, done.stderr
    (seen,) = shown["databases"]
    assert {name: value for name, value in seen.items() if name != "rag_embedding_model_config"} == sent
    assert set(shown["rebuilds"]) == {is_rebuilt}


@pytest.mark.long
def test_a_corpus_is_encrypted_with_the_key_which_is_part_of_it(tmp_path: Path, server: Standin) -> None:
    key = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
    for corpus in ({}, {"kms_key": key}, {"kms_key": key}):
        done = rankbeam("evaluate", rag.experiment(tmp_path, server, rag.dataset(tmp_path, 5), corpus=corpus))
        assert done.status == 0, done.stderr
    assert server.stats().extra["keys"] == ["", key]  # a corpus without the key is not used in its place
    refused = rankbeam("validate", rag.experiment(tmp_path, server, rag.dataset(tmp_path, 5), corpus={"kms_key": "k"}))
    assert "kms_key: must have the form projects/P/locations/L/keyRings/K/cryptoKeys/C" in refused.stderr


@pytest.mark.parametrize("case", SENT)
def test_what_is_sent_is_what_the_parameters_say(case: str) -> None:
    database, sent, is_rebuilt = SENT[case]
    required = {"location": rag.LOCATION, "staging": rag.STAGING, "embedding_model": "m"}
    parameters = RagEngineCorpus(**required, database=database)
    assert sent.items() <= parameters.vector_database().items()
    assert ("rebuild_ann_index" in parameters.import_config()) == is_rebuilt


def test_a_word_and_its_mapping_are_one_corpus_and_a_key_is_not_part_of_it() -> None:
    assert specification({"type": "knn"}) == specification("knn") == {**specification("ann"), "database": "knn"}
    assert specification({"type": "ann"}) == specification("ann")
    assert specification({"type": "ann", "tree_depth": 2}) != specification("ann")
    other = {**PINECONE, "api_key_secret_version": KEY_NAME.replace("3", "4")}
    assert specification(PINECONE) == specification(other)
    assert "secrets" not in json.dumps(specification(PINECONE))


@pytest.mark.parametrize("case", REFUSED)
def test_a_database_that_cannot_work_is_refused_with_its_key(case: str, tmp_path: Path, server: Standin) -> None:
    database, message = REFUSED[case]
    done = evaluate(tmp_path, server, database)
    assert done.status == 2
    assert message in done.stderr
    assert server.stats().extra["databases"] == []


def test_two_corpora_in_one_index_are_refused_before_anything_is_made(tmp_path: Path, server: Standin) -> None:
    done = evaluate(tmp_path, server, SEARCH, grid={"chunk_size": [12, 16]})
    assert done.status == 2
    assert f"the index {INDEX} can hold one corpus, and several would be built there" in done.stderr
    assert server.stats().extra["databases"] == []
