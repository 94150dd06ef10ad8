"""Services that search by the query's vector: a model embeds the query, and the `http` retriever sends the vector."""

import json
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support import plug_ins
from support.cli import rankbeam
from support.inputs import write
from support.json_server import responding, serving
from support.runs import evaluated
from support.standin_answers import QUERIES, dataset
from support.standins import serve
from support.standins.models import embedding

from rankbeam.pipelines.results.run import Results

PLUG_IN = """
import json

import numpy as np

from rankbeam import Quota, Ranking, RemoteRetriever, Reply
from support.standins.models import embedding


class Near(RemoteRetriever):
    encoder: str
    texts: dict[str, str]

    service = "encoder"
    default_quota = Quota(requests_per_minute=12_000)

    async def connect(self):
        return Connection(self.texts)

    def read(self, answer):
        ids, scores = json.loads(answer)
        return Ranking(tuple(ids), tuple(scores))


def unit(vector):
    return np.array(vector, np.float32) / np.linalg.norm(vector)


class Connection:
    def __init__(self, texts):
        self.documents = [(name, unit(embedding(text))) for name, text in texts.items()]

    async def call(self, payload, timeout_s, attempt):
        request = json.loads(payload)
        query = unit(request["vector"])
        scored = sorted(((float(query @ vector), name) for name, vector in self.documents), reverse=True)
        scores, ids = zip(*scored[: request["top_k"]])
        return Reply(json.dumps([ids, scores]))

    async def close(self):
        pass
"""
BODY = {"vector": "{vector}", "limit": "{top_k}"}


def unit(vector: list[float]) -> np.ndarray:
    return np.array(vector, np.float32) / np.linalg.norm(vector)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@contextmanager
def vector_database(folder: Path) -> Iterator[tuple[str, list[list[float]]]]:
    """A service that ranks the corpus by the cosine of its vectors and the request's; yields its URL and a log."""
    documents = [(row["_id"], unit(embedding(row["text"]))) for row in lines(folder / "corpus.jsonl")]
    log: list[list[float]] = []

    def respond(_: str, request: Any) -> tuple[int, bytes]:
        log.append(request["vector"])
        query = unit(request["vector"])
        scored = sorted(((float(query @ vector), name) for name, vector in documents), reverse=True)
        points = [{"id": name, "score": score} for score, name in scored[: request["limit"]]]
        return 200, json.dumps({"result": {"points": points}}).encode()

    with serving(respond) as address:
        yield f"{address}/search", log


def retriever(url: str, **more: Any) -> dict[str, Any]:
    places = {"results": "result.points", "id": "id", "score": "score"}
    return {"type": "http", "url": url, "body": BODY, "embedding_model": "e", **places, **more}


def write_experiment(folder: Path, services: dict[str, Any], retrievers: dict[str, Any], **more: Any) -> str:
    quotas = {name: {"requests_per_minute": 12_000} for name in [*services, "http"]}
    experiment = {
        "name": "vectors",
        "dataset": {key: path for key, path in dataset(folder).items() if key != "answers"},
        "services": services,
        "quotas": quotas,
        "configurations": [{"name": name, "retriever": entry, "top_k": 10} for name, entry in retrievers.items()],
        "metrics": ["nDCG@5"],
        "output": {"path": "out", "rankings": True},
    } | more
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
    return str(path)


def rankings(results: Results) -> dict[str, dict[str, list[str]]]:
    """The documents of each query, by configuration."""
    names = {row["config_id"]: row["name"] for row in results.configurations}
    ranked: dict[str, dict[str, list[str]]] = {name: {} for name in names.values()}
    for row in results.table("rankings").to_pylist():
        ranked[names[row["config_id"]]][row["query_id"]] = [document["doc_id"] for document in row["documents"]]
    return ranked


def expected(folder: Path, text_of: Callable[[dict[str, Any]], str] = lambda row: row["text"]) -> dict[str, list[str]]:
    """The order by cosine, in plain NumPy."""
    documents = [(row["_id"], unit(embedding(row["text"]))) for row in lines(folder / "corpus.jsonl")]
    ranked = {}
    for row in lines(folder / "queries.jsonl"):
        query = unit(embedding(text_of(row)))
        scored = sorted(((float(query @ vector), name) for name, vector in documents), reverse=True)
        ranked[row["_id"]] = [name for _, name in scored[:10]]
    return ranked


def openai(url: str, model: str = "m") -> dict[str, Any]:
    return {"type": "openai", "base_url": f"{url}/v1", "model": model}


def test_a_service_gets_the_vector_of_each_query_and_neither_is_paid_for_again(tmp_path: Path) -> None:
    dataset(tmp_path)
    with serve("openai") as models, vector_database(tmp_path) as (url, log):
        path = write_experiment(tmp_path, {"e": openai(models.url)}, {"vectors": retriever(url)})
        planned = rankbeam("plan", path).stdout
        assert (models.stats().calls, log) == (0, [])
        first = evaluated(path, "r1")
        embedded, searched = models.stats().queries, len(log)
        second = evaluated(path, "r2")
        assert (models.stats().queries, len(log)) == (embedded, searched)
        planned_again = rankbeam("plan", path).stdout
    assert f"e: {QUERIES} calls to make" in planned
    assert f"http: {QUERIES} calls to make" in planned
    assert "0 calls to make" in planned_again
    assert embedded == {f"embed {row['text']}": 1 for row in lines(tmp_path / "queries.jsonl")}
    assert rankings(first) == rankings(second) == {"vectors": expected(tmp_path)}
    assert {row["pool"]: row["calls"] for row in first.rows("usage")}["http"] == searched == QUERIES
    assert Counter(map(len, log)) == {len(embedding("")): QUERIES}


@pytest.mark.long
def test_a_plug_in_gets_the_vectors_of_the_model_that_it_names(tmp_path: Path) -> None:
    dataset(tmp_path)
    write(tmp_path / "site" / "near.py", PLUG_IN)
    plug_ins.install(tmp_path / "site", {"rankbeam.retrievers": {"near": "near:Near"}})
    texts = {row["_id"]: row["text"] for row in lines(tmp_path / "corpus.jsonl")}
    entry = {"type": "near", "encoder": "e", "texts": texts}
    with serve("openai") as models:
        path = write_experiment(tmp_path, {"e": openai(models.url)}, {"vectors": entry}, quotas={})
        planned = plug_ins.run(tmp_path, "plan", path).stdout
        run = plug_ins.run(tmp_path, "evaluate", path, "--run-id", "r1")
        assert run.returncode == 0, run.stderr
        planned_again = plug_ins.run(tmp_path, "plan", path).stdout
    assert f"near: {QUERIES} calls to make" in planned
    assert f"e: {QUERIES} calls to make" in planned
    assert planned_again.count(f"0 calls to make · {QUERIES} of {QUERIES} are in the ledger") == 2
    assert rankings(Results(str(tmp_path / "out"), "r1")) == {"vectors": expected(tmp_path)}


@pytest.mark.long
def test_answers_to_vectors_of_one_model_are_not_those_to_another_model(tmp_path: Path) -> None:
    dataset(tmp_path)
    with serve("openai") as models, vector_database(tmp_path) as (url, log):
        services = {"e": openai(models.url), "f": openai(models.url, "other")}
        grid = {"embedding_model": ["e", "f"], "top_k": [3, 10]}
        path = write_experiment(tmp_path, services, {"vectors": retriever(url)}, grid=grid)
        results = evaluated(path, "r1")
    assert len(results.configurations) == 4
    assert len({row["config_id"] for row in results.configurations}) == 4
    assert len(log) == 2 * QUERIES  # the larger top_k answers both


def test_a_query_without_an_embedding_has_failed_and_is_not_searched(tmp_path: Path) -> None:
    dataset(tmp_path)
    queries = lines(tmp_path / "queries.jsonl")
    with serve("openai") as models, vector_database(tmp_path) as (url, log):
        path = write_experiment(tmp_path, {"e": openai(models.url)}, {"vectors": retriever(url)})
        queries[0]["text"] = " "
        (tmp_path / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in queries), encoding="utf-8")
        results = evaluated(path, "r1")
    (failure,) = results.rows("failures")
    assert (failure["query_id"], failure["message"]) == (queries[0]["_id"], "the query has no embedding")
    assert len(log) == QUERIES - 1


def test_a_vector_of_zeros_is_not_searched(tmp_path: Path) -> None:
    model = {"type": "hashed", "dimensions": 2}  # which has zeros for "owners pay"
    with responding(lambda _: (200, b'{"result": {"points": []}}')) as (url, _):
        entry = retriever(url, body={"query": "{query}", **BODY})
        path = write_experiment(tmp_path, {"e": model}, {"vectors": entry})
        queries = tmp_path / "queries.jsonl"
        queries.write_text(queries.read_text("utf-8").replace("what of tides 0", "owners pay"), encoding="utf-8")
        (failure,) = evaluated(path, "r1").rows("failures")
    assert (failure["query_id"], failure["message"]) == ("q0", "the query has no embedding")


@contextmanager
def embedder(vectors: Iterator[list[float]]) -> Iterator[dict[str, Any]]:
    """A model that answers with these vectors, one after the other, whatever the text; yields its service."""

    def respond(_: str, request: Any) -> tuple[int, bytes]:
        texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
        return 200, json.dumps({"data": [{"embedding": next(vectors)} for _ in texts]}).encode()

    with serving(respond) as address:
        yield {"type": "openai", "base_url": f"{address}/v1", "model": "m", "texts_per_request": 1}


@pytest.mark.long
def test_a_vector_of_zeros_from_a_service_is_requested_again(tmp_path: Path) -> None:
    with embedder(chain([[0.0, 0.0]] * 2, repeat([3.0, 4.0]))) as service:
        entry = {"type": "dense", "embedding_model": "e"}
        result = rankbeam("evaluate", write_experiment(tmp_path, {"e": service}, {"dense": entry}))
    assert (result.status, "have no embedding" in result.stderr) == (0, False)


@pytest.mark.long
def test_vectors_of_another_model_are_refused_until_they_are_deleted(tmp_path: Path) -> None:
    vector = [3.0, 4.0]
    with embedder(iter(lambda: vector, None)) as service:
        path = write_experiment(tmp_path, {"e": service}, {"dense": {"type": "dense", "embedding_model": "e"}})
        evaluated(path, "r1")
        vector = [0.0, 3.0, 4.0]  # the service now has another model
        with (tmp_path / "queries.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"_id": "new", "text": "a new query"}\n')
        with (tmp_path / "qrels.trec").open("a", encoding="utf-8") as file:
            file.write("new 0 d1 1\n")
        refused = rankbeam("evaluate", path)
        assert refused.status == 2
        assert "e: embeddings have 2 and 3 components" in refused.stderr
        with (tmp_path / "corpus.jsonl").open("a", encoding="utf-8") as file:
            file.write('{"_id": "new", "text": "a new document"}\n')
        refused = rankbeam("evaluate", path)
        assert refused.status == 2
        assert "e: embeddings have 2 and 3 components" in refused.stderr
        command = shlex.split(refused.stderr.split("`")[1])
        assert rankbeam(*command[1:], "--yes").status == 0
        assert evaluated(path, "r2").rows("failures") == []


@pytest.mark.long
def test_earlier_messages_are_part_of_the_vector(tmp_path: Path) -> None:
    dataset(tmp_path)
    with serve("openai") as models, vector_database(tmp_path) as (url, log):
        path = write_experiment(tmp_path, {"e": openai(models.url)}, {"vectors": retriever(url, query="history")})
        rows = [
            {**row, "history": [{"role": "user", "text": "What is a workspace?"}]}
            for row in lines(tmp_path / "queries.jsonl")
        ]
        (tmp_path / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        results = evaluated(path, "r1")
        embedded = [text.removeprefix("embed ") for text in models.stats().queries]
    assert len(log) == QUERIES
    assert all("What is a workspace?" in text for text in embedded)
    texts = {row["text"]: next(text for text in embedded if text.endswith(row["text"])) for row in rows}
    assert rankings(results) == {"vectors": expected(tmp_path, lambda row: texts[row["text"]])}


@pytest.mark.long
def test_rewritten_queries_are_embedded_in_their_roles_as_for_dense(tmp_path: Path) -> None:
    dataset(tmp_path)
    roles = {"query_prefix": "query: ", "document_prefix": ""}
    with serve("openai") as models, vector_database(tmp_path) as (url, log):
        services = {"e": {**openai(models.url), **roles}, "w": openai(models.url, "writer")}
        retrievers = {"dense": {"type": "dense", "embedding_model": "e"}, "vectors": retriever(url)}
        grid = {"rewrite": {"off": None, **{kind: {"service": "w", "kind": kind} for kind in ("hyde", "multi_query")}}}
        path = write_experiment(tmp_path, services, retrievers, grid=grid)
        ranked = rankings(evaluated(path, "r1"))
        searched = len(log)
        evaluated(path, "r2")
        assert len(log) == searched
    for rewrite in ("off", "hyde", "multi_query"):
        assert ranked[f"vectors:rewrite={rewrite}"] == ranked[f"dense:rewrite={rewrite}"]
    assert ranked["vectors:rewrite=off"] != ranked["vectors:rewrite=hyde"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"embedding_model": None}, "{vector} is the query's embedding; name the service that makes it"),
        ({"body": {"q": "{query}"}}, "embedding_model has no effect: neither params nor body contains {vector}"),
        ({"url": "http://127.0.0.1:9/{vector}"}, "unknown placeholder {vector}"),
        ({"embedding_model": "g"}, "'g'"),
    ],
)
def test_a_vector_without_a_model_and_a_model_without_a_vector_are_refused(
    changes: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    entry = {**retriever("http://127.0.0.1:9/search"), **changes}
    entry = {key: value for key, value in entry.items() if value is not None}
    path = write_experiment(tmp_path, {"e": {"type": "hashed"}}, {"vectors": entry})
    result = rankbeam("validate", path)
    assert result.status == 2
    assert problem in result.stderr
