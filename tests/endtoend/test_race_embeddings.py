"""A race of retrievers whose queries are embedded: those that are dropped embed no further query."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import rankbeam
from support.inputs import write
from support.racing import LOOKS, QUERIES, RACE, answers, calls, experiment, systems
from support.remote import http, write_experiment
from support.runs import evaluated, query_values
from support.standins import Standin, serve

DOCUMENTS = {row["id"]: row["text"] for rows in answers("best").values() for row in rows}


def embedding(server: Standin, **also: Any) -> dict[str, Any]:
    return {"type": "openai", "base_url": f"{server.url}/v1", "model": "m", "texts_per_request": 1, **also}


def embedded(server: Standin) -> int:
    return sum(server.stats().queries.values())


def with_corpus(folder: Path, path: str, dense: dict[str, Any]) -> str:
    """Add a configuration that searches a corpus to an experiment."""
    content = yaml.safe_load(Path(path).read_text("utf-8"))
    lines = "".join(json.dumps({"_id": name, "text": f"{name} {text}"}) + "\n" for name, text in DOCUMENTS.items())
    content["dataset"]["corpus"] = write(folder / "corpus.jsonl", lines)
    content["configurations"].append({"name": "dense", "retriever": {"type": "dense", **dense}, "top_k": 10})
    return write_experiment(folder, content)


def raced(folder: Path, servers: dict[str, Standin], services: dict[str, Any], **also: Any) -> str:
    """Write a race in which the queries of every remote retriever are embedded by the model of its name."""
    body = {"query": "{query}", "vector": "{vector}", "size": "{top_k}"}
    configurations = [
        {"name": name, "retriever": http(server, body=body, embedding_model=name), "top_k": 10}
        for name, server in servers.items()
    ]
    quotas = {name: {"requests_per_minute": 60_000} for name in ("http", *services)}
    settings = {**RACE, "configurations": configurations, "services": services, "quotas": quotas, **also}
    return experiment(folder, servers, **settings)


@pytest.mark.long
def test_queries_are_embedded_for_configurations_in_the_race_only(tmp_path: Path) -> None:
    with systems("best", "worst") as servers, serve("openai") as first, serve("openai") as second:
        services = {"best": embedding(first), "worst": embedding(second)}
        path = raced(tmp_path, servers, services)
        plan = " ".join(rankbeam("plan", path).stdout.split())
        results = evaluated(path)
        assert calls(servers) == {"best": QUERIES, "worst": LOOKS[0]}
        assert (embedded(first), embedded(second)) == (QUERIES, LOOKS[0])
    assert "so 62% to 100% of the calls above are made" in plan
    assert results.run["failures"] == 0


@pytest.mark.long
def test_a_dropped_index_in_this_process_is_asked_no_more_and_fails_no_query(tmp_path: Path) -> None:
    with systems("best") as servers, serve("openai") as first, serve("openai") as second:
        services = {"best": embedding(first), "other": embedding(second)}
        path = with_corpus(tmp_path, raced(tmp_path, servers, services), {"embedding_model": "other"})
        results = evaluated(path)
        assert (embedded(first), embedded(second)) == (QUERIES, len(DOCUMENTS) + LOOKS[0])
    dropped = {row["name"]: (row["config_id"], row["dropped_at"]) for row in results.configurations}
    assert dropped["dense"][1] == LOOKS[0]
    assert results.run["failures"] == 0
    values = query_values(results)["dense"]
    ranked = [row for row in results.table("rankings").to_pylist() if row["config_id"] == dropped["dense"][0]]
    assert len(ranked) == LOOKS[0] == sum(map(bool, values.values()))


@pytest.mark.long
def test_the_least_cost_of_a_race_contains_the_embeddings_of_all_documents(tmp_path: Path) -> None:
    with systems("best") as servers, serve("openai") as first, serve("openai") as second:
        services = {"best": embedding(first), "other": embedding(second)}
        quotas = {
            "http": {"requests_per_minute": 60_000, "price_per_1000": 0},
            **{name: {"requests_per_minute": 60_000, "price_per_1000": 1000} for name in services},
        }
        least = len(DOCUMENTS) + 2 * LOOKS[0]
        also = {"quotas": quotas, "max_cost": least - 1}
        path = with_corpus(tmp_path, raced(tmp_path, servers, services, **also), {"embedding_model": "other"})
        refused = rankbeam("evaluate", path)
        assert embedded(first) == embedded(second) == 0
    assert refused.status == 2
    planned = f"{least:,} to {len(DOCUMENTS) + 2 * QUERIES:,}"
    assert f"the calls are planned to cost {planned}: no call was made" in refused.stderr
