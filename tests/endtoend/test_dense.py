"""Dense retrieval through the command line: embedded by a service once, within its quota, or read from Parquet."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.runs import evaluated
from support.standin_answers import QUERIES, dataset, model
from support.standins import Faults, Standin, serve
from support.standins.models import embedding

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.usage import cost_of_1000_queries, queries_of, usage_rows

DENSE = {"type": "dense", "embedding_model": "e"}


def write_experiment(folder: Path, service: dict[str, Any] | None, retrievers: dict[str, Any], **more: Any) -> str:
    experiment = {
        "name": "dense",
        "dataset": {key: path for key, path in dataset(folder).items() if key != "answers"},
        "services": {} if service is None else {"e": service},
        "quotas": {} if service is None else {"e": {"requests_per_minute": 12_000}},
        "corpora": {"local": {"type": "chunks", "chunk_size": 4, "chunk_overlap": 1}},
        "configurations": [
            {"name": name, "retriever": retriever, "top_k": 10} for name, retriever in retrievers.items()
        ],
        "metrics": ["nDCG@5"],
        "output": {"path": "out"},
    } | more
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
    return str(path)


def rankings(folder: Path, run_id: str, name: str) -> dict[str, list[str]]:
    results = Results(str(folder / "out"), run_id)
    (config_id,) = (row["config_id"] for row in results.table("configurations").to_pylist() if row["name"] == name)
    rows = [row for row in results.table("rankings").to_pylist() if row["config_id"] == config_id]
    return {row["query_id"]: [document["doc_id"] for document in row["documents"]] for row in rows}


def expected(folder: Path) -> dict[str, list[str]]:
    """The order by the cosine of what the stand-in says, in plain NumPy; of equals the greater id first."""
    read = lambda name: [json.loads(line) for line in (folder / name).read_text().splitlines()]  # noqa: E731
    unit = lambda text: np.array(embedding(text), np.float32) / np.linalg.norm(embedding(text))  # noqa: E731
    documents = sorted(((row["_id"], unit(row["text"])) for row in read("corpus.jsonl")), reverse=True)
    return {
        row["_id"]: [name for name, vector in sorted(documents, key=lambda pair: -float(pair[1] @ unit(row["text"])))][
            :10
        ]
        for row in read("queries.jsonl")
    }


def service(server: Standin, kind: str) -> dict[str, Any]:
    if kind != "vertex":
        return model(server, kind)
    return {"type": "gemini", "model": "m-001", "project": "p", "location": "l", "api_endpoint": server.url}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["openai", *in_campaigns("gemini", "vertex")])
def test_every_text_is_embedded_once_and_never_paid_for_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve("openai" if kind == "openai" else "gemini") as server:
        retrievers = {"dense": DENSE, "chunks": {**DENSE, "corpus": "local"}}
        path = write_experiment(tmp_path, service(server, kind), retrievers)
        planned = rankbeam("plan", path)
        assert server.stats().calls == 0
        evaluated(path, "r1")
        stats = server.stats()
        evaluated(path, "r2")
        again = server.stats()
        shutil.rmtree(tmp_path / "out" / "ledger")
        planned_again = rankbeam("plan", path)
        evaluated(path, "r3")
        queries = sum(server.stats().queries.values()) - sum(again.queries.values())
    assert queries == len((tmp_path / "queries.jsonl").read_text().splitlines())  # the vectors of documents are kept
    assert f"e: {queries} calls to make" in planned_again.stdout
    assert rankings(tmp_path, "r3", "dense") == expected(tmp_path)
    assert set(stats.queries.values()) == {1}
    assert again.calls == stats.calls
    assert f"e: {len(stats.queries)} calls to make" in planned.stdout
    assert stats.calls < len(stats.queries) / 2 or kind != "openai"  # other models take one text
    assert rankings(tmp_path, "r1", "dense") == expected(tmp_path)
    assert rankings(tmp_path, "r2", "chunks") == rankings(tmp_path, "r1", "chunks")
    (row,) = Results(str(tmp_path / "out"), "r1").table("usage").to_pylist()
    assert (row["pool"], row["calls"]) == ("e", stats.calls)


@pytest.mark.long
def test_embeddings_of_queries_cost_each_configuration_the_same_in_every_run(tmp_path: Path) -> None:
    """Models that share requests divide their tokens; documents are embedded once, and part of no query's cost."""

    def costs(output: str, queries: int, run_id: str) -> tuple[dict[str, float | None], int]:
        folder = tmp_path / str(queries)
        folder.mkdir(exist_ok=True)
        service = {"type": "openai", "base_url": f"{server.url}/v1", "model": "m", "texts_per_request": 3}
        retrievers = {"words": {"type": "bm25"}, "dense": DENSE, "chunks": {**DENSE, "corpus": "local"}}
        quotas = {"e": {"requests_per_minute": 60_000, "price_per_million": {"input": 1e6, "output": 0.0}}}
        more = {"output": {"path": str(tmp_path / output)}, "quotas": quotas, "dataset": dataset(folder, queries)}
        del more["dataset"]["answers"]
        results = evaluated(write_experiment(folder, service, retrievers, **more), run_id)
        rows, numbers = usage_rows(results), queries_of(results)
        by_name = {row["name"]: cost_of_1000_queries(rows, numbers, row["config_id"]) for row in results.configurations}
        return by_name, sum(row["input_tokens"] for row in rows)

    with serve("openai") as server:
        new, tokens = costs("new", QUERIES, "whole")
        costs("other", 5, "some")
        rest, _ = costs("other", QUERIES, "rest")
        again, paid = costs("other", QUERIES, "again")
    assert new["words"] == 0.0 < new["dense"] == new["chunks"] < tokens * 1000 / QUERIES
    assert rest == again == new
    assert paid == 0


@pytest.mark.long
def test_queries_and_documents_are_embedded_in_their_roles_and_only_changed_ones_again(tmp_path: Path) -> None:
    with serve("openai") as server:
        plain = {"type": "openai", "base_url": f"{server.url}/v1", "model": "e5-small-v2"}
        roles = {"query_prefix": "query: ", "document_prefix": "passage: "}
        path = write_experiment(tmp_path, plain, {"dense": DENSE})
        warned = rankbeam("validate", path)
        path = write_experiment(tmp_path, {**plain, **roles}, {"dense": DENSE})
        silent = rankbeam("validate", path)
        planned = rankbeam("plan", path)
        results = evaluated(path, "r1")
        embedded = server.stats().queries
        path = write_experiment(tmp_path, {**plain, **roles, "query_prefix": "q: "}, {"dense": DENSE})
        evaluated(path, "r2")
        again = server.stats().queries
    assert 'e5-small-v2 expects query_prefix: "query: " and document_prefix: "passage: "' in warned.stderr
    assert "expects" not in silent.stderr
    lines = lambda name: (tmp_path / name).read_text().splitlines()  # noqa: E731
    texts = lambda name: {json.loads(line)["text"] for line in lines(name)}  # noqa: E731
    queries, documents = texts("queries.jsonl"), texts("corpus.jsonl")
    assert f"e: {len(queries) + len(documents)} calls to make" in planned.stdout
    (row,) = results.table("usage").to_pylist()
    (requests,) = re.findall(r"· ([\d,]+) requests ·", planned.stdout)
    assert int(requests) <= row["calls"] <= 2 * int(requests) + 2
    expected = {f"embed query: {text}"[:206] for text in queries} | {
        f"embed passage: {text}"[:206] for text in documents
    }
    assert set(embedded) == expected
    assert set(again) - expected == {f"embed q: {text}"[:206] for text in queries}
    assert set(again.values()) == {1}


@pytest.mark.long
def test_a_run_that_lost_its_service_goes_on_where_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve("openai", faults=Faults(kinds=("quota_day",), after=10, first=1)) as server:
        quotas = {"e": {"requests_per_minute": 60_000, "concurrent_calls": 2}}
        one_text = {**model(server, "openai"), "texts_per_request": 1}
        path = write_experiment(tmp_path, one_text, {"dense": DENSE}, quotas=quotas)
        stopped = rankbeam("evaluate", path, "--run-id", "r1")
        evaluated(path, "r2")
        both = server.stats()
    assert "could not be embedded (first error: " in stopped.stderr
    assert "have no embedding, and are not ranked" in stopped.stderr
    assert sum(both.queries.values()) == len(both.queries) + 1  # only the refused one was asked twice
    assert rankings(tmp_path, "r2", "dense") == expected(tmp_path)


FILES = {"type": "dense", "vectors": "documents.parquet", "query_vectors": "queries.parquet"}


def in_files(folder: Path) -> tuple[str, dict[str, Any]]:
    """An experiment with vectors in files; returns its path, and the columns of documents."""
    path = write_experiment(folder, None, {"files": FILES})
    for name, source in (("queries", "queries.jsonl"), ("documents", "corpus.jsonl")):
        rows = [json.loads(line) for line in (folder / source).read_text().splitlines()]
        columns = {"id": [row["_id"] for row in rows], "vector": [embedding(row["text"]) for row in rows]}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return path, columns


@pytest.mark.campaign
def test_vectors_may_stand_in_parquet(tmp_path: Path) -> None:
    path, columns = in_files(tmp_path)
    run = rankbeam("evaluate", path, "--run-id", "r1")
    assert run.status == 0, run.stderr
    assert rankings(tmp_path, "r1", "files") == expected(tmp_path)

    (vectors,) = (tmp_path / "out" / "indexes").rglob("vectors.npy")
    vectors.write_bytes(vectors.read_bytes()[:-4] + b"\0\0\0\0")
    damaged = rankbeam("evaluate", path, "--run-id", "r2")
    assert "vectors.npy); it is built again" in damaged.stderr
    assert rankings(tmp_path, "r2", "files") == expected(tmp_path)

    columns["vector"][0] = [-number for number in columns["vector"][0]]
    pq.write_table(pa.table(columns), tmp_path / "documents.parquet")
    assert rankbeam("evaluate", path, "--run-id", "r3").status == 0
    assert rankings(tmp_path, "r3", "files") != expected(tmp_path)  # other vectors, another file


WRONG_VECTORS = {
    "the vector does not have 8 components, as the others do": [1.0, 2.0],
    "the vector contains a value that is not a finite number": [float("nan")] * 8,
}


@pytest.mark.parametrize("problem", WRONG_VECTORS)
def test_a_vector_that_is_none_is_refused_with_file_and_row(problem: str, tmp_path: Path) -> None:
    path, columns = in_files(tmp_path)
    columns["vector"][2] = WRONG_VECTORS[problem]
    pq.write_table(pa.table(columns), tmp_path / "documents.parquet")
    run = rankbeam("evaluate", path)
    assert run.status == 2
    assert f"documents.parquet:3: {problem}" in run.stderr


@pytest.mark.long
def test_documents_without_a_vector_are_counted_and_not_ranked(tmp_path: Path) -> None:
    path, columns = in_files(tmp_path)
    lacking, columns["vector"][1] = columns["id"][1], None
    pq.write_table(pa.table(columns), tmp_path / "documents.parquet")
    run = rankbeam("evaluate", path, "--run-id", "r1")
    assert f"1 of {len(columns['id'])} documents have no embedding, and are not ranked" in run.stderr
    whole = {query: [name for name in names if name != lacking] for query, names in expected(tmp_path).items()}
    for query, names in rankings(tmp_path, "r1", "files").items():
        assert names[: len(whole[query])] == whole[query]
        assert lacking not in names


MISTAKES = [
    ({"type": "dense"}, "give embedding_model, the name of a service, or vectors and query_vectors"),
    ({**DENSE, "embedding_model": "f"}, "retriever.embedding_model: services: has no 'f'; valid are: e"),
    ({"type": "dense", "vectors": "no.parquet", "query_vectors": "no.parquet"}, "retriever.vectors: no.parquet"),
]


@pytest.mark.parametrize(("retriever", "problem"), MISTAKES)
def test_a_mistake(tmp_path: Path, retriever: dict[str, Any], problem: str) -> None:
    run = rankbeam("validate", write_experiment(tmp_path, {"type": "hashed"}, {"dense": retriever}))

    assert run.status == 2
    assert problem.replace("no.parquet", str(tmp_path / "no.parquet"), 1) in run.stderr


@pytest.mark.campaign
def test_the_grid_sweeps_the_model(tmp_path: Path) -> None:
    more = {"services": {"a": {"type": "hashed"}, "b": {"type": "hashed", "dimensions": 16}}, "quotas": {}}
    grid = {"embedding_model": ["a", "b"]}
    path = write_experiment(tmp_path, None, {"dense": {"type": "dense", "corpus": "local"}}, grid=grid, **more)
    run = rankbeam("evaluate", path, "--run-id", "r1")

    assert run.status == 0, run.stderr
    table = Results(str(tmp_path / "out"), "r1").table("configurations").to_pylist()
    assert [row["name"] for row in table] == ["dense:embedding_model=a", "dense:embedding_model=b"]
