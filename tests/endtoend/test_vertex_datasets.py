"""Datasets of Vertex's evaluation service: read with all that their rows have, and written as its SDK reads them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.cli import rankbeam
from support.goldens import goldens_file, lines
from support.inputs import write
from support.runs import evaluated

from rankbeam.transforms.clients.formats.cases.google import CaseTurn, ModelAnswer, row_of
from rankbeam.transforms.clients.formats.cases.read import Case, read_cases
from rankbeam.transforms.clients.formats.cases.roles import survey_of
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.records.trajectories import as_json, steps_in

WORDS = st.text("abc é?\"'{[", min_size=1, max_size=8).filter(lambda text: text == text.strip())
STEPS = st.lists(st.builds(lambda tool, value: {"tool": tool, "args": {"q": value}}, st.sampled_from("ab"), WORDS))
HISTORY = st.lists(WORDS, max_size=3).map(
    lambda texts: [{"role": ("user", "assistant")[n % 2], "text": text} for n, text in enumerate(texts)]
)


def cases(folder: Path, rows: list[Any]) -> list[Case]:
    return list(read_cases(CaseSource(write(folder / "f.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows)))))


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    question=WORDS, history=HISTORY, reference=st.none() | WORDS, expected=st.none() | STEPS, answer=st.none() | WORDS,
    contexts=st.none() | st.lists(WORDS, max_size=3), steps=st.none() | STEPS,
)  # fmt: skip
def test_a_row_is_the_same_case_after_writing_and_reading(
    tmp_path: Path, question: str, history: Any, reference: Any, expected: Any, answer: Any, contexts: Any, steps: Any
) -> None:
    """Everything besides the question may be absent."""
    turn = CaseTurn(question, reference, None if expected is None else steps_in(expected))
    system = None
    if answer is not None:
        system = ModelAnswer(
            answer, None if contexts is None else tuple(contexts), None if steps is None else steps_in(steps)
        )
    (case,) = cases(tmp_path, [{"response": None, "reference": None, **row_of("q", turn, history, system)}])
    assert (case.query_id, case.question, case.reference, case.answer) == ("q", question, reference, answer)
    assert json.loads(case.attributes.get("history", "[]")) == history
    assert case.expected_steps == turn.steps
    if system is not None:
        assert (None if case.contexts is None else tuple(text for _, text in case.contexts)) == system.contexts
        assert case.steps == system.steps


def test_agents_candidates_and_parts_that_are_no_texts(tmp_path: Path) -> None:
    call = {"content": {"parts": [{"function_call": {"name": "find", "args": {"q": "x"}}}], "role": "model"}}
    reply = {"content": {"parts": [{"text": "Ann."}], "role": "model"}, "author": "agent"}
    query = {"content": {"parts": [{"text": "Who?"}], "role": "user"}, "author": "user"}
    image = {"parts": [{"text": "What is it?"}, {"inline_data": {"mime_type": "image/png", "data": ""}}]}
    rows = [
        {"prompt": "Who?", "response": "Ann.", "intermediate_events": [call]},
        {"agent_data": {"turns": [{"events": [query, call, reply]}]}},
        {"prompt": image, "responses": [{"response": {"parts": [{"text": text}]}} for text in ("A dog.", "A cat.")]},
        {"prompt": "And?", "response": "No.", "history": "user: Who?"},
        {"prompt": '{"parts": 1}', "response": '{"answer": "yes"}', "history": ["Who?"]},
    ]
    read = cases(tmp_path, rows)
    assert [(case.question, case.answer) for case in read] == [
        ("Who?", "Ann."), ("Who?", "Ann."), ("What is it?", "A dog."), ("And?", "No."),
        ('{"parts": 1}', '{"answer": "yes"}'),
    ]  # fmt: skip
    assert [None if case.steps is None else as_json(case.steps) for case in read[:2]] == [
        [{"tool": "find", "args": {"q": "x"}}]
    ] * 2
    survey = survey_of(CaseSource(str(tmp_path / "f.jsonl")))
    assert survey.counts == {"other parts": 1, "several answer": 1, "text history": 2}
    assert any("parts other than text, such as images, are left out" in note for note in survey.notes())


def experiment(folder: Path) -> str:
    history = [{"role": "user", "text": "Hi"}, {"role": "assistant", "text": "Hello"}]
    queries = [
        {"_id": "q1", "text": "Who?", "reference": "Ann.", "metadata": {"history": history, "conversation": "c"}},
        {"_id": "q2", "text": "When?", "reference": "Now."},
    ]
    write(folder / "queries.jsonl", "".join(f"{json.dumps(row)}\n" for row in queries))
    answer = {"query_id": "q1", "answer": "Ann did.", "contexts": ["Ann did it.", "It rains."]}
    write(folder / "answers.jsonl", f"{json.dumps(answer)}\n")
    text = {
        "name": "e", "dataset": {"queries": "queries.jsonl", "answers": "reference"},
        "services": {"j": {"type": "lexical"}}, "judge": {"service": "j"}, "max_failure_rate": 0.5,
        "configurations": [{"name": "bot", "answers": {"type": "replay", "path": "answers.jsonl"}}],
        "metrics": ["Faithfulness"], "output": {"path": "out"},
    }  # fmt: skip
    return write(folder / "e.yaml", yaml.safe_dump(text))


@pytest.mark.long
def test_the_dataset_of_an_experiment_is_written_with_or_without_answers(tmp_path: Path) -> None:
    path, new = experiment(tmp_path), tmp_path / "new.jsonl"
    done = rankbeam("evalset", path, "--format", "vertex", "--output", str(new))
    assert (done.status, done.stdout) == (0, f"{new}: 2 rows\n"), done.stderr
    history = [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"text": "Hello"}]}]
    assert lines(new) == [
        {"prompt": "Who?", "reference": "Ann.", "conversation_history": history, "query_id": "q1"},
        {"prompt": "When?", "reference": "Now.", "query_id": "q2"},
    ]
    words = ["evalset", path, "--format", "vertex", "--configuration", "bot", "--output"]
    assert "no finished run" in rankbeam(*words, str(tmp_path / "a.jsonl")).stderr
    assert evaluated(path).run["state"] == "done"
    done = rankbeam(*words, str(tmp_path / "a.jsonl"))
    assert "1 query left out, without an answer of bot" in done.stderr
    (row,) = lines(tmp_path / "a.jsonl")
    assert (row["response"], row["context"]) == ("Ann did.", "Ann did it.\n\nIt rains.")
    assert row["contexts"] == ["Ann did it.", "It rains."]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--format", "vertex", "--output", "taken.jsonl"], "exists already"),
        (["--format", "vertex", "--output", "new.csv"], "names end with .jsonl"),
        (["--output", "a.evalset.json", "--configuration", "bot"], "leave it out"),
    ],
)
def test_wrong_commands_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = experiment(tmp_path)
    write(tmp_path / "taken.jsonl", "")
    done = rankbeam("evalset", path, *words)
    assert done.status == 2
    assert problem in done.stderr


def test_a_benchmark_is_exported_and_read_again(tmp_path: Path) -> None:
    assert rankbeam("goldens", goldens_file(tmp_path, items=3, types=["lookup"], reviews={"pool": 0})).status == 0
    path = tmp_path / "benchmark.jsonl"
    done = rankbeam("goldens", "export", str(tmp_path / "out"), "--format", "vertex", "--output", str(path))
    assert done.status == 0, done.stderr
    queries = {
        row["_id"]: (row["text"], row["metadata"]["answer"]) for row in lines(tmp_path / "out" / "queries.jsonl")
    }
    assert {case.query_id: (case.question, case.reference) for case in read_cases(CaseSource(str(path)))} == queries


_BY_THE_SDK = """
import json, sys, types
sys.modules["pandas"] = types.ModuleType("pandas")  # imported for tables only
sys.modules["pandas"].DataFrame = object
from vertexai._genai import _evals_data_converters as converters
rows = [json.loads(line) for line in open(sys.argv[1])]
print(converters.auto_detect_dataset_schema(rows).value, file=sys.stderr)
print(converters.get_dataset_converter(converters.auto_detect_dataset_schema(rows)).convert(rows).model_dump_json())
"""


@pytest.mark.campaign
def test_the_sdk_reads_what_is_written(tmp_path: Path) -> None:
    """Converted by google-cloud-aiplatform itself, and read again from its own dump."""
    path = experiment(tmp_path)
    assert rankbeam("evaluate", path).status == 0
    words = ["--format", "vertex", "--configuration", "bot", "--output", str(tmp_path / "a.jsonl")]
    assert rankbeam("evalset", path, *words).status == 0
    command = [sys.executable, "-c", _BY_THE_SDK, str(tmp_path / "a.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "flatten" in done.stderr
    write(tmp_path / "dumped.json", done.stdout)
    (own,), (dumped,) = (list(read_cases(CaseSource(str(tmp_path / name)))) for name in ("a.jsonl", "dumped.json"))
    for name in ("question", "answer", "reference", "contexts"):
        assert getattr(dumped, name) == getattr(own, name)
    assert dumped.attributes["history"] == own.attributes["history"]
