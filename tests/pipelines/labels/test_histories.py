"""People who label see the earlier turns of a conversation: in the table, the JSON lines and the page."""

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.inputs import write
from support.labelled import tasks
from support.runs import evaluated

HISTORY = [{"role": "user", "text": "Who pays?"}, {"role": "assistant", "text": "=Owners pay."}]
SHOWN = "user: Who pays?\nassistant: =Owners pay."
QUERIES = [
    {"_id": "c1-1", "text": "Who pays invoices?", "conversation": "c1", "turn": 1},
    {"_id": "c1-2", "text": "And when?", "conversation": "c1", "turn": 2, "history": HISTORY},
]
EXPERIMENT = """name: turns
dataset: {queries: queries.jsonl, corpus: corpus.jsonl}
services: {reader: {type: extractive}, overlap: {type: lexical}}
judge: {service: overlap}
configurations:
  - {name: bm25, retriever: {type: bm25}, top_k: 2, generate: {service: reader, contexts: 2, template: template.txt}}
metrics: [Faithfulness, ContextRelevance@2]
output: {path: out}
"""


@pytest.fixture(scope="module")
def evaluated_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("turns")
    write(tmp_path / "queries.jsonl", "".join(f"{json.dumps(row)}\n" for row in QUERIES))
    corpus = [
        ("d1", "Owners pay invoices on the first day of each month."),
        ("d2", "And members pay nothing when invited."),
    ]
    write(tmp_path / "corpus.jsonl", "".join(f"{json.dumps({'_id': name, 'text': text})}\n" for name, text in corpus))
    write(tmp_path / "template.txt", "{history}\n{query}\n{contexts}\n")
    evaluated(write(tmp_path / "experiment.yaml", EXPERIMENT))
    return tmp_path


@pytest.fixture
def out(evaluated_once: Path, tmp_path: Path) -> Path:
    """A copy of the output, beside the inputs."""
    return shutil.copytree(evaluated_once, tmp_path / "turns") / "out"


def sample(out: Path, metric: str) -> Any:
    outcome = rankbeam("label", str(out), "--sample", "2", "--metric", metric)
    assert outcome.status == 0, outcome.stderr
    return outcome


@pytest.mark.parametrize("metric", ["Faithfulness", *in_campaigns("ContextRelevance@2", "P@2")])
def test_each_form_shows_the_earlier_turns_of_later_queries_alone(out: Path, metric: str) -> None:
    sample(out, metric)
    rows = tasks(out)
    assert {row["history"] for row in rows if row["query"] == "And when?"} == {SHOWN}
    assert {row["history"] for row in rows if row["query"] == "Who pays invoices?"} == {""}
    content = (out / "label-tasks" / "tasks-001.csv").read_text("utf-8")
    cells = list(csv.DictReader(io.StringIO(content, newline="")))
    assert [row["history"] for row in cells] == [row["history"] for row in rows]
    page = (out / "label-tasks" / "tasks-001.html").read_text("utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert [row["history"] for row in data["items"]] == [row["history"] for row in rows]


def test_decisions_of_tables_with_and_without_the_column_are_read(out: Path) -> None:
    sample(out, "P@2")
    rows = [{**row, "decision": "1"} for row in tasks(out)]
    lines = "".join(f"{json.dumps({key: row[key] for key in ('id', 'decision')})}\n" for row in rows)
    outcome = rankbeam("label", str(out), "--apply", write(out.parent / "d.jsonl", lines))
    assert (outcome.status, "2 of 2 drawn queries are completely labelled" in outcome.stdout) == (0, True), (
        outcome.stderr
    )


def test_a_warning_says_that_turns_are_missing_where_the_queries_cannot_be_read(
    out: Path, evaluated_once: Path, tmp_path: Path
) -> None:
    queries = shutil.move(evaluated_once / "queries.jsonl", tmp_path)
    try:
        outcome = sample(out, "Faithfulness")
    finally:
        shutil.move(queries, evaluated_once)
    assert "tasks will not show the earlier turns of conversations" in outcome.stderr
    assert "queries.jsonl" in outcome.stderr
    assert {row["history"] for row in tasks(out)} == {""}


def test_turns_of_a_file_of_questions_and_answers_are_shown(tmp_path: Path) -> None:
    turns = [{"type": "human", "content": "Who pays?"}, {"type": "ai", "content": "Owners pay."}]
    row = {
        "user_input": [*turns, {"type": "human", "content": "And when?"}],
        "retrieved_contexts": ["Owners pay invoices in May."],
        "reply": "Owners pay in May.",
    }
    answers = write(tmp_path / "answers.jsonl", json.dumps(row))
    out = tmp_path / "my out"
    options = ("--service", "lexical", "-m", "Faithfulness", "--column", "answer=reply", "--output", str(out))
    assert rankbeam("judge", answers, *options).status == 0
    outcome = rankbeam("label", str(out), "--sample", "1")
    assert outcome.stderr == ""
    assert "1 decision (1.0 a query), about a minute\n" in outcome.stdout
    assert outcome.stdout.endswith(f"read it: rankbeam label '{out}' --apply FILE\n")
    assert {row["history"] for row in tasks(out)} == {"user: Who pays?\nassistant: Owners pay."}
