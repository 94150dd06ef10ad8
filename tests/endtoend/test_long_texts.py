"""Answers with more claims than one call holds, and long contexts: planned, judged in parts, whole in tables."""

import json
from pathlib import Path

import pytest
from support.cli import rankbeam
from support.inputs import write
from support.standin_answers import model, planned, write_experiment
from support.standins import serve

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.labels import text_hash

SENTENCES = 130
ANSWER = " ".join(f"Fact {number} holds." for number in range(SENTENCES))
CONTEXTS = ["Short.", " ".join(f"Line {number} of many." for number in range(200))]


def test_long_answers_and_contexts_are_judged_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    contexts = [{"doc_id": f"d{number}", "text": text} for number, text in enumerate(CONTEXTS)]
    rows = [{"query_id": f"q{number}", "answer": ANSWER, "contexts": contexts} for number in range(3)]
    answers = write(tmp_path / "answers.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    with serve("openai") as server:
        path = write_experiment(
            tmp_path, model(server, "openai"), {}, metrics=["Faithfulness", "ContextRelevance"],
            judge={"service": "m", "repeat_share": 0, "max_context_tokens": 600},
            configurations=[{"name": "app", "answers": {"type": "replay", "path": answers}}],
        )  # fmt: skip
        queries = tmp_path / "queries.jsonl"
        queries.write_text("".join(queries.read_text("utf-8").splitlines(keepends=True)[:3]), "utf-8")
        before = planned(path)
        done = rankbeam("evaluate", path, "--run-id", "r1")
        assert done.status == 0, done.stderr
        calls = server.stats().calls
        after = planned(path)
    # claims 3; support 3 windows × (1 + 2 parts); grades 1 + 2
    assert calls == 3 * (3 + 3 * 3 + 3)
    assert before["calls"][0] <= calls <= before["calls"][1]
    assert after["ledger_hits"] == calls == after["calls"][0] == after["calls"][1]
    results = Results(str(tmp_path / "out"), "r1")
    claims = [row for row in results.table("claims").to_pylist() if row["query_id"] == "q1"]
    assert [row["position"] for row in claims] == list(range(SENTENCES))
    assert {row["text_hash"] for row in claims} == {text_hash(ANSWER)}
    assert all(ANSWER[row["quote_start"] : row["quote_end"]] == row["text"] for row in claims)
    verdicts = [row for row in results.table("verdicts").to_pylist() if row["query_id"] == "q1"]
    of_long = [row for row in verdicts if row["step"] == "support" and row["right_hash"] == text_hash(CONTEXTS[1])]
    assert [row["position"] for row in of_long] == list(range(SENTENCES))
    assert {row["items_hash"] for row in of_long} == {claims[0]["items_hash"]}
    supported = {row["position"] for row in verdicts if row["step"] == "support" and row["verdict"] == "supported"}
    grades = [row["grade"] for row in verdicts if row["step"] == "grade"]
    (metrics,) = (row["metrics"] for row in results.table("query_metrics").to_pylist() if row["query_id"] == "q1")
    assert {cell["metric"]: cell["value"] for cell in metrics} == pytest.approx(
        {"Faithfulness": len(supported) / SENTENCES, "ContextRelevance": sum(grades) / 6}
    )
    assert (tmp_path / "out" / "report.html").exists()
