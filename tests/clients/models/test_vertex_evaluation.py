"""Vertex's evaluation service as a judge of criteria, with Google's own client against a stand-in that goes wrong."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.campaigns import in_campaigns
from support.cli import Outcome, rankbeam
from support.connections import call
from support.helpdesk import HELPDESK, few
from support.inputs import write
from support.standins import Faults, Standin, serve
from support.standins.evaluation import score_of

from rankbeam.pipelines.results.find import find_run
from rankbeam.transforms.clients.models.vertex_evaluation import VertexEvaluation, metric_of
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind

VALUES = {
    "criterion": "Is {it} fluent?",
    "verdicts": "1 | 2 | 3 | 4 | 5",
    "examples": "",
    "texts": [{"id": "query", "text": "Who? {answer}"}, {"id": "context 1", "text": "Ann."}],
}


def model(server: Standin, **more: Any) -> VertexEvaluation:
    return VertexEvaluation(project="p", location="us-central1", api_endpoint=server.url, **more)


def answered(server: Standin, prompt: Prompt) -> str | CallError:
    return asyncio.run(call(model(server), prompt.payload()))[0]


def test_the_template_names_the_texts_and_holds_none_of_them() -> None:
    template, instance = metric_of(Prompt("criterion", VALUES))
    assert template == (
        "{criterion}\n\nGive a score that is exactly one of 1, 2, 3, 4, 5, and explain it."
        "\n\n# query\n{query}\n\n# context_1\n{context_1}"
    )
    assert instance == {"criterion": "Is {it} fluent?", "examples": "", "query": "Who? {answer}", "context_1": "Ann."}


def test_a_score_becomes_a_verdict_with_its_explanation() -> None:
    with serve("evaluation") as server:
        answer = answered(server, Prompt("criterion", VALUES))
    assert isinstance(answer, str)
    reply = json.loads(json.loads(answer)["text"])
    assert reply["verdict"] in "12345"
    assert reply["reason"].startswith("about ")


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("quota", FailureKind.QUOTA),
        ("unavailable", FailureKind.UNAVAILABLE),
        ("permission", FailureKind.PERMISSION),
        ("malformed", FailureKind.MALFORMED),
        ("empty", FailureKind.MALFORMED),
    ],
)
def test_what_goes_wrong_is_a_failure_of_its_kind(fault: str, kind: FailureKind) -> None:
    with serve("evaluation", faults=Faults(rate=1, kinds=(fault,))) as server:
        answer = answered(server, Prompt("criterion", VALUES))
    assert isinstance(answer, CallError)
    assert answer.kind is kind


def test_other_steps_are_not_asked() -> None:
    with serve("evaluation") as server:
        answer = answered(server, Prompt("support", {"claims": {}}))
    assert isinstance(answer, CallError)
    assert answer.kind is FailureKind.INVALID


def experiment(folder: Path, url: str, **changes: str) -> str:
    place = few(folder, 8)
    lines = {
        "services": f"{{reader: {{type: extractive}}, vertex: {{type: vertex_evaluation, project: p, "
        f"location: us-central1, api_endpoint: '{url}'}}}}",
        "judge": '{service: vertex, repeat_share: 0, criteria: {Fluent: {question: "Is it fluent?", scale: 1..5}}}',
        "metrics": "[nDCG@10, Fluent]",
        "configurations": "[{name: a, retriever: {type: bm25}, top_k: 5, generate: {service: reader, contexts: 3}}]",
        "quotas": "{vertex: {requests_per_minute: 60000}}",
        "dataset": f"{{queries: {place}/queries.jsonl, qrels: {place}/qrels/test.tsv, corpus: {place}/corpus.jsonl}}",
        "output": "{path: out}",
        "name": "e",
    } | changes
    return write(folder / "e.yaml", "".join(f"{name}: {value}\n" for name, value in lines.items()))


def run(folder: Path, url: str, **changes: str) -> Outcome:
    return rankbeam("evaluate", experiment(folder, url, **changes))


@pytest.mark.long
@pytest.mark.parametrize("rate", [0.0, *in_campaigns(0.1)])
def test_a_run_judges_by_scores_through_faults_and_pays_for_none_twice(tmp_path: Path, rate: float) -> None:
    with serve("evaluation", faults=Faults(rate=rate, kinds=("unavailable", "internal", "empty"))) as server:
        done = run(tmp_path, server.url)
        assert done.status == 0, done.stderr
        paid = server.stats().answered
        again = run(tmp_path, server.url)
        assert server.stats().answered == paid
    assert "vertex_evaluation does not say which model judges" in done.stderr
    assert again.status == 0
    results = find_run(str(tmp_path / "out"))
    verdicts = results.table("verdicts").to_pylist()
    assert verdicts
    assert all(row["step"] == "criterion:Fluent" and row["reason"].startswith("about ") for row in verdicts)
    by_answer = {(row["query_id"], row["right_hash"]): row["verdict"] for row in verdicts}
    texts = {row["query_id"]: row for row in results.table("answers").to_pylist()}
    values = {
        row["query_id"]: next(item["value"] for item in row["metrics"] if item["metric"] == "Criterion(Fluent)")
        for row in results.table("query_metrics").to_pylist()
    }
    for (query_id, _), verdict in by_answer.items():
        values_text = {"query": query_text(query_id), "answer": texts[query_id]["answer"]}
        prompt = "Is it fluent?\n\nGive a score that is exactly one of 1, 2, 3, 4, 5, and explain it."
        prompt += "".join(f"\n\n# {name}\n{text}" for name, text in values_text.items())
        assert verdict == score_of(prompt)
        assert values[query_id] == pytest.approx((int(verdict) - 1) / 4)


def query_text(query_id: str) -> str:
    rows = map(json.loads, (HELPDESK / "queries.jsonl").read_text().splitlines())
    return next(str(row["text"]) for row in rows if row["_id"] == query_id)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metrics": "[Faithfulness]"}, "Faithfulness is judged by claims, but the judge only scores criteria"),
        (
            {"judge": '{service: vertex, criteria: {Fluent: {question: "Is it fluent?"}}}'},
            "has verdicts that are not numbers, but the judge gives scores; write its scale as 1..5",
        ),
        (
            {"configurations": "[{name: a, retriever: {type: bm25}, generate: {service: vertex, contexts: 3}}]"},
            "'vertex' scores criteria and cannot generate answers for a",
        ),
    ],
)
def test_work_beyond_scores_is_refused_before_anything_runs(
    tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    done = run(tmp_path, "http://127.0.0.1:9", **changes)
    assert done.status == 2
    assert message in done.stderr
