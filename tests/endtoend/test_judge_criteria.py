"""Criteria of the user's own without an experiment file: `rankbeam judge FILE --criteria FILE`, and in Python."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.cli import rankbeam as command
from support.inputs import write
from support.standin_answers import model
from support.standins import Standin, serve

import rankbeam
from rankbeam.pipelines.results.find import find_run

ROWS = [
    {"question": "When are invoices sent?", "answer": "On the first day.", "contexts": ["On the first day."]},
    {"question": "Is there a free plan?", "answer": "Yes, for ten users.", "contexts": ["It has five users."]},
]
CRITERIA = """# what we care about
Tone:
  question: words/tone.txt
  examples: words/tone.jsonl
Brief: Is it brief?
Depth: {question: "Is it deep?", about: [query, answer, contexts], scale: 0..3}
"""
EXAMPLE = {"query": "Hi?", "answer": "Go away.", "verdict": "no", "reason": "It is rude."}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RANKBEAM_TEST_KEY", "k")
    with serve("openai") as server:
        yield server


@pytest.fixture
def criteria(tmp_path: Path) -> str:
    write(tmp_path / "own" / "words" / "tone.txt", "Is it polite?\n")
    write(tmp_path / "own" / "words" / "tone.jsonl", json.dumps(EXAMPLE) + "\n")
    write(tmp_path / "answers.jsonl", "".join(f"{json.dumps(row)}\n" for row in ROWS))
    return write(tmp_path / "own" / "criteria.yaml", CRITERIA)


def judged(folder: Path, service: str, *words: str) -> Any:
    file, output = str(folder / "answers.jsonl"), str(folder / "out")
    return command("judge", file, "--service", service, "--output", output, *words)


def metrics(folder: Path, name: str = "out") -> dict[str, list[Any]]:
    rows = find_run(str(folder / name)).table("query_metrics").to_pylist()
    names = [cell["metric"] for cell in rows[0]["metrics"]]
    return {
        name: [cell["value"] for row in rows for cell in row["metrics"] if cell["metric"] == name] for name in names
    }


@pytest.mark.long
def test_criteria_of_a_file_are_metrics(tmp_path: Path, criteria: str, server: Standin) -> None:
    service = json.dumps(model(server, "openai"))
    outcome = judged(tmp_path, service, "--criteria", criteria)
    assert outcome.status == 0, outcome.stderr
    values = metrics(tmp_path)
    assert set(values) == {"Criterion(Tone)", "Criterion(Brief)", "Criterion(Depth)"}
    assert set(values["Criterion(Tone)"]) <= {0.0, 1.0}
    calls = server.stats().calls
    refused = judged(tmp_path, service, "--criteria", criteria, "-m", "Faithfulness", "--max-calls", "1")
    assert refused.status == 2
    assert "judge: 2 to 8 calls to make" in refused.stderr
    assert "--max-calls is 1, and up to " in refused.stderr
    assert server.stats().calls == calls
    again = judged(tmp_path, service, "--criteria", criteria, "-m", "Tone", "-m", "Faithfulness")
    assert again.status == 0, again.stderr
    assert {*metrics(tmp_path)} == {"Criterion(Tone)", "Faithfulness"}


@pytest.mark.campaign
def test_python_has_the_same(tmp_path: Path, criteria: str, server: Standin) -> None:
    service = model(server, "openai")
    before = server.stats().calls
    result = rankbeam.judge(ROWS, service=service, criteria=criteria, output=tmp_path / "file")
    calls = server.stats().calls - before
    assert {"Criterion(Tone)", "Criterion(Depth)"} <= set(result.leaderboard().column_names)
    stated = {"Depth": {"question": "Is it deep?", "about": ["query", "answer", "contexts"], "scale": "0..3"}}
    rankbeam.judge(ROWS, "Depth", service=service, criteria=stated, output=tmp_path / "dict")
    assert 0 < server.stats().calls - before - calls < calls


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("Tone:\n  question: a?\n  scale: 1\n", 3, "is not a scale; write 0..3"),
        ("Tone:\n  question: a?\n  scale: {yes: 1}\n", 3, "scale"),
        ("Tone: {qestion: a}\n", 1, "unknown key; did you mean 'question'?"),
        ("Other: {question: a}\nFaithfulness: {question: a}\n", 2, "is the name of another metric"),
        ("tone: {question: a}\n", 1, "begin with a capital letter"),
        ("Tone:\n  question: missing.txt\n", 2, "missing.txt"),
        ("Tone: missing.txt\n", 1, "missing.txt"),
        ("Tone: ''\n", 1, "question: must not be empty"),
        ("Tone: {question: a, about: [anwser]}\n", 1, "anwser"),
        ("Tone: {question: a}\nTone: {question: b}\n", 2, "is given twice"),
        ("Tone:\n  about: [query]\n", 1, "question: is missing"),
        ("- Tone\n", None, "is not a mapping of criteria"),
        ("", None, "is not a mapping of criteria"),
        ("{}", None, "must not be empty"),
        ("Tone: [\n", 2, "is not valid YAML"),
    ],
)
def test_wrong_criteria_are_refused_with_their_line(
    tmp_path: Path, criteria: str, content: str, line: int | None, problem: str
) -> None:
    path = write(Path(criteria), content)
    outcome = judged(tmp_path, "lexical", "--criteria", path)
    assert outcome.status == 2, outcome.stdout
    assert problem in outcome.stderr
    assert (f"{path}:{line}: " if line else f"{path}") in outcome.stderr
    assert not (tmp_path / "out").exists()


def test_texts_that_the_rows_lack_and_missing_files_are_refused(tmp_path: Path, criteria: str) -> None:
    path = write(Path(criteria), yaml.safe_dump({"Right": {"question": "a?", "about": ["answer", "reference"]}}))
    outcome = judged(tmp_path, "lexical", "--criteria", path)
    assert (outcome.status, "reference" in outcome.stderr) == (2, True), outcome.stderr
    outcome = judged(tmp_path, "lexical", "--criteria", str(tmp_path / "none.yaml"))
    assert (outcome.status, "none.yaml" in outcome.stderr) == (2, True), outcome.stderr
