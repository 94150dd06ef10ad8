"""The requests and answers of docs/search-services.md, with a server that answers as each of these services does."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import rankbeam
from support.documents import page
from support.json_server import serving
from support.runs import evaluated

PAGE = page("search-services")
ELASTIC = {"hits": {"hits": [{"_id": "d1", "_score": 0.9, "_source": {"text": "one"}}, {"_id": "d2", "_score": 0.1}]}}
ANSWERS: dict[str, Any] = {
    "elasticsearch": ELASTIC,
    "opensearch": ELASTIC,
    "vertex-vector-search": {
        "nearestNeighbors": [
            {
                "id": "0",
                "neighbors": [
                    {"datapoint": {"datapointId": "d1", "crowdingTag": {"crowdingAttribute": "0"}}, "distance": 0.9},
                    {"datapoint": {"datapointId": "d2"}, "distance": 0.1},
                ],
            }
        ]
    },
    "azure": {
        "value": [{"@search.score": 0.9, "id": "d1", "text": "one"}, {"@search.score": 0.1, "id": "d2", "text": "two"}]
    },
    "pinecone": {
        "matches": [
            {"id": "d1", "score": 0.9, "values": [], "metadata": {"text": "one"}},
            {"id": "d2", "score": 0.1, "values": []},
        ],
        "namespace": "",
        "usage": {"readUnits": 6},
    },
    "milvus": {
        "code": 0,
        "cost": 0,
        "data": [
            {"distance": 0.9, "id": 1, "doc_id": "d1", "text": "one"},
            {"distance": 0.1, "id": 2, "doc_id": "d2", "text": "two"},
        ],
    },
    "vespa": {
        "root": {
            "id": "toplevel",
            "relevance": 1.0,
            "fields": {"totalCount": 2},
            "children": [
                {"id": "id:kb:doc::d1", "relevance": 0.9, "fields": {"doc_id": "d1", "text": "one"}},
                {"id": "id:kb:doc::d2", "relevance": 0.1, "fields": {"doc_id": "d2", "text": "two"}},
            ],
        }
    },
    "small": {
        "result": {
            "points": [
                {"id": 1, "version": 1, "score": 0.9, "payload": {"doc_id": "d1", "text": "one"}},
                {"id": 2, "version": 1, "score": 0.1, "payload": {"doc_id": "d2", "text": "two"}},
            ]
        },
        "status": "ok",
        "time": 0.001,
    },
}
RETRIEVERS = {
    entry["name"]: entry["retriever"]
    for block in PAGE.blocks
    for entry in yaml.safe_load(block.text)["configurations"]
    if entry["name"] != "large"
}


@contextmanager
def answering(answer: Any) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """A server with one answer to every request; yields its address, and a log of paths and bodies."""
    log: list[tuple[str, Any]] = []

    def respond(path: str, body: Any) -> tuple[int, bytes]:
        log.append((path, body))
        return 200, json.dumps(answer).encode()

    with serving(respond) as address:
        yield address, log


def write_experiment(folder: Path, retriever: dict[str, Any], endpoint: str) -> str:
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "Who pays?"}\n', encoding="utf-8")
    (folder / "qrels.txt").write_text("q1 0 d1 1\n", encoding="utf-8")
    experiment = {
        "name": "services",
        "dataset": {"queries": "queries.jsonl", "qrels": "qrels.txt"},
        "services": {"model": {"type": "hashed", "dimensions": 16}},
        "configurations": [
            {"name": "a", "retriever": {**retriever, "embedding_model": "model", "api_endpoint": endpoint}, "top_k": 2}
        ],
        "metrics": ["RR"],
        "output": {"path": "out"},
    }
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(experiment), encoding="utf-8")
    return str(path)


def leaves(value: Any) -> list[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if parts is None else [leaf for part in parts for leaf in leaves(part)]


def test_every_service_of_the_page_is_tried() -> None:
    assert RETRIEVERS.keys() == ANSWERS.keys()


def test_the_experiment_of_the_page_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("QDRANT_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "a value that is secret")
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("q1 0 d1 1\n", encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "Who pays?"}\n', encoding="utf-8")
    (tmp_path / "vectors.yaml").write_text(PAGE.blocks[0].text, encoding="utf-8")
    result = rankbeam("plan", str(tmp_path / "vectors.yaml"))
    assert result.status == 0, result.stderr
    for model in ("openai:text-embedding-3-small", "openai:text-embedding-3-large"):
        assert f"{model}: 1 call to make" in result.stdout
    assert "http: 2 calls to make" in result.stdout


@pytest.mark.parametrize("name", RETRIEVERS)
def test_the_request_of_a_service_is_complete_and_its_answer_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in re.findall(r"\$\{env:(\w+)\}", PAGE.text):
        monkeypatch.setenv(variable, "a value that is secret")
    with answering(ANSWERS[name]) as (endpoint, log):
        results = evaluated(write_experiment(tmp_path, RETRIEVERS[name], endpoint), "r1")
    ((path, body),) = log
    assert RETRIEVERS[name]["url"].endswith(path)
    assert sum(isinstance(leaf, float) for leaf in leaves(body)) == 16
    assert 2 in leaves(body)
    assert not [leaf for leaf in leaves(body) if isinstance(leaf, str) and re.search(r"\{(vector|top_k|query)\}", leaf)]
    (row,) = results.table("rankings").to_pylist()
    assert [document["doc_id"] for document in row["documents"]] == ["d1", "d2"]
    if "score" in RETRIEVERS[name]:
        assert [document["score"] for document in row["documents"]] == [0.9, 0.1]


def test_an_error_of_milvus_with_status_200_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILVUS_TOKEN", "a value that is secret")
    with answering({"code": 100, "message": "can't find collection[collection=kb]"}) as (endpoint, _):
        results = evaluated(write_experiment(tmp_path, RETRIEVERS["milvus"], endpoint), "r1")
    (failure,) = results.rows("failures")
    assert "can't find collection" in failure["message"]
