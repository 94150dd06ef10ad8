"""Thresholds beside none in one grid: one call serves both, and an answer without scores fails only the thresholds."""

from pathlib import Path

import pytest
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.remote import answers, dataset, failure_rows, rag, run_file, write_experiment
from support.runs import query_values
from support.standins import serve

from rankbeam.pipelines.results.run import Results

QUERIES = 30
NONE, NEAR, NEARER = (f"rag:vector_distance_threshold={value}" for value in (None, 0.3, 0.2))


@pytest.mark.parametrize("thresholds", [[0.2, None, 0.3], *in_campaigns([None, 0.3, 0.2])])
def test_an_answer_without_scores_fails_only_the_cells_with_a_threshold(
    thresholds: list[float | None], tmp_path: Path
) -> None:
    rankings = answers(QUERIES)
    rankings["question 7"] = [document | {"score": None} for document in rankings["question 7"]]
    with serve("rag_engine", answers=rankings) as server:
        both = [
            {"name": "rag", "retriever": rag(server), "top_k": 20},
            {"name": "file", "retriever": {"type": "run_file", "path": run_file(tmp_path, QUERIES)}},
            {"name": "fused", "retriever": {"type": "fusion", "parts": ["rag", "file"]}, "top_k": 20},
        ]
        base = {"dataset": dataset(tmp_path, QUERIES), "configurations": both}
        base |= {"grid": {"vector_distance_threshold": thresholds}}
        base |= {"quotas": {"rag_engine": {"requests_per_minute": 60_000}}}
        outcome = rankbeam("evaluate", write_experiment(tmp_path, base), "--run-id", "r1")
        assert outcome.status == 0, outcome.stderr
        assert server.stats().calls == QUERIES
    results = Results(str(tmp_path / "out"), "r1")
    values = query_values(results)
    assert values[NONE] == values["file"] == values["fused"]
    assert {name for name in values if values[name]["q7"] == {}} == {NEAR, NEARER}
    assert all(values[name]["q6"] for name in values)
    names = {row["config_id"]: row["name"] for row in results.configurations}
    (row,) = failure_rows(tmp_path / "out", "r1")
    assert (names[row["config_id"]], row["query_id"], row["kind"]) == (NEAR, "q7", "malformed")
    assert "has no score" in row["message"]
