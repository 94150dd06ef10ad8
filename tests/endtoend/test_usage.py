"""The table `usage`: what each quota pool was used for, and what that cost."""

from pathlib import Path
from typing import Any

import duckdb
from support.cli import rankbeam
from support.remote import answers, dataset, http, rag, write_experiment
from support.standins import serve

from rankbeam.pipelines.results.run import Results

QUERIES = 12


def usage(path: str, folder: Path, run_id: str) -> list[dict[str, Any]]:
    """The rows of a run, without the common columns."""
    outcome = rankbeam("evaluate", path, "--run-id", run_id)
    assert outcome.status == 0, outcome.stderr
    common = {"run_id", "experiment", "started_at"}
    rows = Results(str(folder / "out"), run_id).table("usage").to_pylist()
    return [{name: value for name, value in row.items() if name not in common} for row in rows]


def test_each_pool_has_a_row_with_its_calls_and_their_cost(tmp_path: Path) -> None:
    nothing = {"stage": "retrieve", "model": None, "input_tokens": 0, "cached_tokens": 0, "output_tokens": 0}
    with serve("http", answers=answers(QUERIES)) as one, serve("rag_engine", answers=answers(QUERIES)) as other:
        experiment = {
            "dataset": dataset(tmp_path, QUERIES),
            "quotas": {
                "http": {"requests_per_minute": 60_000, "price_per_1000": 2.5},
                "rag_engine": {"requests_per_minute": 60_000},
            },
            "configurations": [
                {"name": "http", "retriever": http(one), "top_k": 20},
                {"name": "rag", "retriever": rag(other), "top_k": 20},
            ],
        }
        path = write_experiment(tmp_path, experiment)
        first, second = (usage(path, tmp_path, run_id) for run_id in ("r1", "r2"))
    calls = {"calls": QUERIES, "ledger_hits": 0}
    assert first == [
        {**nothing, **calls, "pool": "http", "cost": QUERIES * 2.5 / 1000},
        {**nothing, **calls, "pool": "rag_engine", "cost": None},
    ]
    hits = {"calls": 0, "ledger_hits": QUERIES}
    assert second == [
        {**nothing, **hits, "pool": "http", "cost": 0.0},
        {**nothing, **hits, "pool": "rag_engine", "cost": None},
    ]
    with duckdb.connect(str(tmp_path / "out" / "results.duckdb"), read_only=True) as database:
        assert database.sql("SELECT sum(calls), sum(ledger_hits) FROM usage").fetchall() == [(24, 24)]
