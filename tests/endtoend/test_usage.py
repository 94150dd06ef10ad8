"""The table `usage`: what each quota pool was used for, and what that cost."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.cli import rankbeam
from support.remote import answers, dataset, http, rag, write_experiment
from support.runs import evaluated
from support.standin_answers import model
from support.standins import serve

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.usage import cost_of_1000_queries, queries_of, usage_rows
from rankbeam.transforms.clients.warehouse import duckdb as warehouse

QUERIES = 12
SLOW_S = 0.03
QUOTAS = {
    "http": {"requests_per_minute": 60_000, "price_per_1000": 2.5},
    "rag_engine": {"requests_per_minute": 60_000},
}


def usage(path: str, folder: Path, run_id: str) -> list[dict[str, Any]]:
    """The rows of a run, without the common columns."""
    evaluated(path, run_id)
    return rows_of(folder, run_id)


def rows_of(folder: Path, run_id: str) -> list[dict[str, Any]]:
    common = {"run_id", "experiment", "started_at"}
    rows = Results(str(folder / "out"), run_id).table("usage").to_pylist()
    return [{name: value for name, value in row.items() if name not in common} for row in rows]


def known(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Calls that the ledger answered, from a row, with the names of calls that were made."""
    return [
        {"calls" if name == "ledger_hits" else name: value for name, value in part.items()}
        for part in row["from_ledger"]
    ]


def costs(results: Results) -> dict[str, float | None]:
    """The cost of 1,000 queries, by configuration."""
    queries, rows = queries_of(results), usage_rows(results)
    return {row["name"]: cost_of_1000_queries(rows, queries, row["config_id"]) for row in results.configurations}


def totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without latencies, and without the share of each configuration."""
    others = {"p50_s", "p95_s", "configurations", "from_ledger"}
    return [{name: value for name, value in row.items() if name not in others} for row in rows]


@pytest.mark.campaign
def test_each_pool_has_a_row_with_its_calls_and_their_cost(tmp_path: Path) -> None:
    nothing = {"stage": "retrieve", "model": None, "input_tokens": 0, "cached_tokens": 0, "output_tokens": 0}
    with serve("http", answers=answers(QUERIES)) as one, serve("rag_engine", answers=answers(QUERIES)) as other:
        experiment = {
            "dataset": dataset(tmp_path, QUERIES),
            "quotas": QUOTAS,
            "configurations": [
                {"name": "http", "retriever": http(one), "top_k": 20},
                {"name": "rag", "retriever": rag(other), "top_k": 20},
            ],
        }
        path = write_experiment(tmp_path, experiment)
        first, second = (usage(path, tmp_path, run_id) for run_id in ("r1", "r2"))
    calls = {"calls": QUERIES, "ledger_hits": 0}
    assert totals(first) == [
        {**nothing, **calls, "pool": "http", "cost": QUERIES * 2.5 / 1000},
        {**nothing, **calls, "pool": "rag_engine", "cost": None},
    ]
    hits = {"calls": 0, "ledger_hits": QUERIES}
    assert totals(second) == [
        {**nothing, **hits, "pool": "http", "cost": 0.0},
        {**nothing, **hits, "pool": "rag_engine", "cost": None},
    ]
    with duckdb.connect(warehouse.build(str(tmp_path / "out")), read_only=True) as database:
        assert database.sql("SELECT sum(calls), sum(ledger_hits) FROM usage").fetchall() == [(24, 24)]


@pytest.mark.long
def test_latency_and_cost_are_known_of_each_configuration(tmp_path: Path) -> None:
    """Configurations that differ in top_k share their calls; a fusion needs those of both of its parts."""
    with (
        serve("http", answers=answers(QUERIES), latency_s=SLOW_S) as one,
        serve("rag_engine", answers=answers(QUERIES)) as other,
    ):
        experiment = {
            "dataset": dataset(tmp_path, QUERIES),
            "quotas": QUOTAS,
            "configurations": [
                {"name": "http", "retriever": http(one), "top_k": 20},
                {"name": "few", "retriever": http(one), "top_k": 5},
                {"name": "rag", "retriever": rag(other), "top_k": 20},
                {"name": "both", "retriever": {"type": "fusion", "parts": ["http", "rag"]}, "top_k": 20},
            ],
        }
        path = write_experiment(tmp_path, experiment)
        shown = rankbeam("evaluate", path, "--run-id", "r1", "--format", "json")
        first, second = rows_of(tmp_path, "r1"), usage(path, tmp_path, "r2")
    names = {row["config_id"]: row["name"] for row in Results(str(tmp_path / "out"), "r1").configurations}
    slow, quick = ({names[of["config_id"]]: of for of in row["configurations"]} for row in first)
    assert list(slow) == ["http", "few", "both"]
    assert list(quick) == ["rag", "both"]
    for row, of in zip(first, (slow, quick), strict=True):
        for part in of.values():
            assert (part["calls"], part["shared_calls"]) == (QUERIES, QUERIES)
            assert (part["p50_s"], part["p95_s"], part["cost"]) == (row["p50_s"], row["p95_s"], row["cost"])
    assert SLOW_S * 0.99 <= first[0]["p50_s"] <= first[0]["p95_s"]
    assert [(row["p50_s"], row["p95_s"], row["configurations"]) for row in second] == [(None, None, [])] * 2
    assert [row["from_ledger"] for row in first] == [[], []]
    for row, later in zip(first, second, strict=True):
        paid = [{name: part[name] for name in known(later)[0]} for part in row["configurations"]]
        assert known(later) == paid
    both = next(row for row in json.loads(shown.stdout)["leaderboard"] if row["configuration"] == "both")
    assert [(row["pool"], row["calls"], row["p95_s"]) for row in both["usage"]] == [
        (row["pool"], QUERIES, row["p95_s"]) for row in first
    ]
    page = Path(rankbeam("report", str(tmp_path / "out"), "--run-id", "r1").stdout.strip()).read_text()
    assert 'id="usage"' in page
    assert "shared with other configurations" in page


@pytest.mark.long
def test_a_configuration_costs_the_same_whatever_the_ledger_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rankings are read from the ledger many at a time, answers of models one after the other."""
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    token_price = {"input": 100.0, "cached": 10.0, "output": 4.0}
    quotas = {**QUOTAS, "m": {"requests_per_minute": 60_000, "price_per_1000": 3.0, "price_per_million": token_price}}
    with serve("http", answers=answers(QUERIES)) as one, serve("openai") as other:
        generated = {"generate": {"service": "m", "contexts": 3}}

        def run(output: str, queries: int, run_id: str) -> Results:
            configurations: list[dict[str, Any]] = [
                {"name": "retrieved", "retriever": http(one), "top_k": 20},
                {"name": "answered", "retriever": http(one), "top_k": 20, **generated},
            ]
            parts = {"services": {"m": model(other, "openai")}, "quotas": quotas, "configurations": configurations}
            data = {"dataset": dataset(tmp_path / f"{queries}", queries), "output": {"path": output}}
            results = evaluated(write_experiment(tmp_path, {**parts, **data}), run_id)
            answers_cost = sum(row["cost"] for row in results.table("answers").to_pylist())
            of_model = [row for row in usage_rows(results) if row["pool"] == "m"]
            recalled = sum(part["cost"] for row in of_model for part in row["from_ledger"])
            assert answers_cost == pytest.approx(sum(row["cost"] for row in of_model) + recalled, rel=1e-9)
            return results

        new = costs(run("new", QUERIES, "whole"))
        run("other", 5, "some")
        rest, again = run("other", QUERIES, "rest"), run("other", QUERIES, "again")
    assert (rest.run["calls"], rest.run["ledger_hits"]) == (2 * (QUERIES - 5), 2 * 5)
    assert (again.run["calls"], again.run["ledger_hits"]) == (0, 2 * QUERIES)
    assert None not in new.values()
    assert new["answered"] > new["retrieved"] == 2.5
    assert costs(rest) == pytest.approx(new, rel=1e-12)
    assert costs(again) == pytest.approx(new, rel=1e-12)
