"""Queries of which parts are absent, with every judged metric: planned and evaluated, replayed and generated."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import rankbeam
from support.inputs import write
from support.judged_world import METRICS_OF_ONE_ANSWER
from support.runs import evaluated
from support.standin_answers import model
from support.standins import serve

REFUSAL = "The contexts do not say."
REFERENCES = {
    "plain": {"answer": "Owners pay the invoices."},
    "flagged": {"answer": "Owners pay the invoices.", "answerable": True},
    "unanswerable": {"answerable": False},
    "nuggets": {"nuggets": [{"text": "owners pay"}]},
    "refusing": {"answer": "The documents do not say."},
    "said": {"answer": "The documents do not say.", "answerable": False},
}
QUERIES = (*REFERENCES, "absent")
CLAIM_F1 = {
    "plain": 0.0,
    "flagged": 0.0,
    "unanswerable": 1.0,
    "nuggets": "no_reference",
    "refusing": "reference_refuses",
    "said": 1.0,
    "absent": "no_reference",
}


def lines(rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_a_system_that_always_refuses_is_right_only_where_there_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    contexts = [[{"text": "Owners pay."}], [], [{"doc_id": "d1", "text": "It rains."}], None]
    rows = [{"query_id": name, "answer": REFUSAL} for name in QUERIES]
    answers = [
        row | ({} if (texts := contexts[place % 4]) is None else {"contexts": texts}) for place, row in enumerate(rows)
    ]
    dataset = {
        "queries": write(
            tmp_path / "queries.jsonl", lines({"_id": name, "text": f"owners {name}"} for name in QUERIES)
        ),
        "corpus": write(tmp_path / "corpus.jsonl", lines([{"_id": "d1", "text": "The owners may pay twice."}])),
        "answers": {"path": write(tmp_path / "r.jsonl", lines({"query_id": q, **r} for q, r in REFERENCES.items()))},
    }
    with serve("openai") as server:
        experiment = {
            "name": "absent", "dataset": dataset,
            "services": {"m": model(server, "openai"), "judge": {"type": "lexical"}, "reader": {"type": "extractive"}},
            "quotas": {"m": {"requests_per_minute": 60_000}},
            "configurations": [
                {"name": "prod", "answers": {"type": "replay", "path": write(tmp_path / "a.jsonl", lines(answers))}},
                {"name": "rag", "retriever": {"type": "bm25"}, "top_k": 3, "generate": {"service": "reader"}},
            ],
            "judge": {"service": "judge", "embeddings": "m", "repeat_share": 0},
            "metrics": METRICS_OF_ONE_ANSWER, "statistics": {"replicates": 0}, "output": {"path": "out"},
        }  # fmt: skip
        path = write(tmp_path / "e.yaml", yaml.safe_dump(experiment, sort_keys=False))
        planned = rankbeam("plan", path)
        results = evaluated(path)
    assert planned.status == 0, planned.stderr
    assert "reference answers that refuse or make no claim, without `answerable`: 1;" in " ".join(
        results.run["warnings"]
    )
    names = {row["config_id"]: row["name"] for row in results.configurations}
    values = {
        row["query_id"]: cell["reason"] if cell["value"] is None else cell["value"]
        for row in results.table("query_metrics").to_pylist()
        for cell in row["metrics"]
        if names[row["config_id"]] == "prod" and cell["metric"].startswith("ClaimF1")
    }
    assert values == CLAIM_F1
