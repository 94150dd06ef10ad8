"""Answers compared with reference answers: without a judge, a service or a call."""

import json
from pathlib import Path

import pytest
from support.cli import rankbeam

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.kernels import overlap

METRICS = {
    "ExactMatch": overlap.exact_match,
    "TokenF1": overlap.token_f1,
    "ROUGE-L": overlap.rouge_l,
    "BLEU": overlap.bleu,
    "chrF": overlap.chrf,
}
REFERENCES = {"q1": "Open the billing page.", "q2": "Ask the owner.", "q3": None, "q4": "In March."}
ANSWERS = {"q1": "Open Billing [1].", "q2": "ask owner", "q3": "Nobody knows."}


def evaluated(folder: Path, more: str = "") -> tuple[Results, str]:
    queries = [{"_id": query, "text": query} | ({"answer": text} if text else {}) for query, text in REFERENCES.items()]
    answers = [{"query_id": query, "answer": text} for query, text in ANSWERS.items()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    (folder / "e.yaml").write_text(
        "name: words\ndataset: {queries: queries.jsonl, answers: answer}\n"
        "configurations: [{name: prod, answers: {type: replay, path: answers.jsonl}}]\n"
        f"metrics: [{', '.join(METRICS)}]\n{more}output: {{path: out}}\n"
    )
    done = rankbeam("evaluate", str(folder / "e.yaml"), "--run-id", "r1")
    assert done.status in (0, 3), done.stderr
    return Results(str(folder / "out"), "r1"), done.stdout + done.stderr


@pytest.mark.parametrize("more", ["", "services: {words: {type: lexical}}\njudge: {service: words}\n"])
def test_answers_are_compared_with_their_references(tmp_path: Path, more: str) -> None:
    results, printed = evaluated(tmp_path, more)
    rows = results.table("query_metrics").to_pylist()
    values = {
        (row["query_id"], metric["metric"]): (metric["value"], metric["status"], metric["reason"])
        for row in rows
        for metric in row["metrics"]
    }
    for name, formula in METRICS.items():
        for query in ("q1", "q2"):
            value = formula(ANSWERS[query].replace(" [1]", ""), REFERENCES[query] or "")
            assert values[query, name][0] == pytest.approx(value, rel=1e-12)
        assert values["q3", name][0] is None
        assert values["q3", name][2] == "no_reference"
        assert values["q4", name][:2] == (None, "failed")  # it has no line in the file
    assert "judge" not in printed.lower().replace("judged", "")
    (row,) = results.configurations
    mean = results.means[row["config_id"], "all", "TokenF1"]
    assert (mean.failed, mean.undefined) == (1, 1)
