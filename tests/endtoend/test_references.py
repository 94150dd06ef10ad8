"""References to the environment: secrets are hidden and no part of what is asked, all others are part of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from apache_beam.internal import pickler
from support.cli import rankbeam
from support.remote import answers, dataset, http, write_experiment
from support.runs import evaluated, query_values
from support.standins import Standin, serve

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.retrievers.base import payload_of
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.records.calls.steps import SearchDepth

QUERIES = 6
ASKS_INDEX = {"query": "${env:RB_INDEX} {query}", "top_k": "{top_k}"}


def experiment(folder: Path, server: Standin, **parameters: Any) -> str:
    configuration = {"name": "remote", "retriever": http(server, **parameters), "top_k": 20}
    quotas = {"http": {"requests_per_minute": 60_000}}
    base = {"dataset": dataset(folder, QUERIES), "quotas": quotas, "configurations": [configuration]}
    return write_experiment(folder, base)


def two_indexes() -> dict[str, list[dict[str, Any]]]:
    """Answers of the index alpha are the judged documents, those of beta are in reverse."""
    rankings = answers(QUERIES)
    return {f"alpha {query}": results for query, results in rankings.items()} | {
        f"beta {query}": results[::-1] for query, results in rankings.items()
    }


def evaluate(path: str, run_id: str) -> dict[str, dict[str, float]]:
    return query_values(evaluated(path, run_id))["remote"]


def ledger_hits(path: str) -> tuple[int, int]:
    (pool,) = json.loads(rankbeam("plan", path, "--format", "json").stdout)["pools"]
    return pool["calls"], pool["ledger_hits"]


@pytest.mark.campaign
def test_another_value_is_another_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve("http", answers=two_indexes()) as server:
        path = experiment(tmp_path, server, body=ASKS_INDEX)
        monkeypatch.setenv("RB_INDEX", "alpha")
        first = evaluate(path, "first")
        monkeypatch.setenv("RB_INDEX", "beta")
        assert ledger_hits(path) == (QUERIES, 0)
        assert evaluate(path, "second") != first
        assert server.stats().calls == 2 * QUERIES
        monkeypatch.setenv("RB_INDEX", "alpha\n")
        assert ledger_hits(path) == (QUERIES, QUERIES)
    ids = {Results(str(tmp_path / "out"), run).configurations[0]["config_id"] for run in ("first", "second")}
    assert len(ids) == 1


async def ask(retriever: Any) -> None:
    connection = await retriever.connect()
    try:
        await connection.call(payload_of("question 0", SearchDepth(10)), 20.0, 1)
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "parameters",
    [
        {"params": {"index": "${env:RB_INDEX}"}},
        {"headers": {"X-Index": "i-${env:RB_INDEX}"}},
        {"url": "/search?index=${env:RB_INDEX}"},
        {"url": "/search?a&${env:RB_INDEX}&b="},
        {"body": {"query": "{query}", "in": [{"index": "${env:RB_INDEX}"}]}},
    ],
)
def test_a_value_counts_wherever_it_stands(
    parameters: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        url = server.url + parameters.get("url", "/search")
        path = experiment(tmp_path, server, **{**parameters, "url": url})
        keys = set()
        for value in ("alpha", "beta"):
            monkeypatch.setenv("RB_INDEX", value)
            (retriever,) = load_experiment(path).remote.values()
            keys.update(retriever.keys("http", ["who?"], SearchDepth(10)))
            asyncio.run(ask(retriever))
            seen = server.stats().requests[-1]
            assert value in str([seen["target"], seen["headers"].get("x-index"), seen["body"]])
        assert len(keys) == 2


@pytest.mark.parametrize("url", ["http://h//${env:RB_INDEX}?q={query}", "http://h?${env:RB_INDEX}={query}"])
def test_every_reference_in_a_url_is_known(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RB_INDEX", "alpha")
    assert Http(url=url, results="hits", id="id").environment == {"${env:RB_INDEX}": "alpha"}


@pytest.mark.long
def test_a_secret_is_no_part_of_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve("http", answers=answers(QUERIES)) as server:
        secretive = {"X-Algolia-API-Key": "${env:RB_ONE}", "X-Session": "${env:RB_SESSION_TOKEN}"}
        path = experiment(tmp_path, server, headers=secretive, params={"who": "${env:RB_ONE}"})
        for value in ("one-secret", "other-secret"):
            monkeypatch.setenv("RB_ONE", value)
            monkeypatch.setenv("RB_SESSION_TOKEN", value)
            evaluate(path, value)
        assert server.stats().calls == QUERIES
        assert server.stats().requests[-1]["headers"]["x-algolia-api-key"] == "one-secret"


def test_values_are_not_hidden_in_answers_and_may_be_parts_of_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RB_INDEX", "doc")
    with serve("http", answers=answers(QUERIES)) as server:
        assert any(evaluate(experiment(tmp_path, server, params={"index": "${env:RB_INDEX}"}), "r")["q0"].values())
    rankings = Results(str(tmp_path / "out"), "r").table("rankings").to_pylist()
    assert all(document["doc_id"].startswith("doc-") for row in rankings for document in row["documents"])


def test_a_value_travels_with_the_job_to_machines_with_another_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RB_INDEX", "alpha")

    with serve("http", answers=two_indexes()) as server:
        (here,) = load_experiment(experiment(tmp_path, server, body=ASKS_INDEX)).remote.values()
        monkeypatch.setenv("RB_INDEX", "gamma")
        there = pickler.loads(pickler.dumps(here))
        asyncio.run(ask(there))
        assert server.stats().queries == {"alpha question 0": 1}
    keys = {key for loaded in (here, there) for key in loaded.keys("http", ["who?"], SearchDepth(10))}
    assert len(keys) == 1


@pytest.mark.parametrize("command", ["validate", "plan", "evaluate"])
@pytest.mark.parametrize("value", [None, " \n"])
def test_one_without_a_value_is_refused_with_its_line(
    command: str, value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RB_INDEX", raising=False)
    if value is not None:
        monkeypatch.setenv("RB_INDEX", value)
    with serve("http") as server:
        path = experiment(tmp_path, server, params={"size": 1, "index": "${env:RB_INDEX}"})
    outcome = rankbeam(command, path)
    line = next(number for number, line in enumerate(Path(path).read_text().splitlines(), 1) if "RB_INDEX" in line)
    assert outcome.status == 2
    assert (
        f"experiment.yaml:{line}: configurations[0].retriever.params.index: parameter index needs the" in outcome.stderr
    )
    assert "RB_INDEX, which is not set here" in outcome.stderr
