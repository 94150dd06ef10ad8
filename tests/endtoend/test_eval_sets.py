"""The dataset of an experiment as an EvalSet of ADK, read again as a dataset: conversations, answers and tool uses."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.cli import Outcome, rankbeam
from support.inputs import write

from rankbeam.transforms.clients.formats.cases.read import Case, read_cases
from rankbeam.transforms.clients.formats.cases.source import CaseSource

WORDS = st.text("abc é?\"'", min_size=1, max_size=8).filter(str.strip)
STEPS = st.lists(
    st.builds(lambda tool, value: {"tool": tool, "args": {"q": value}}, st.sampled_from("ab"), st.integers(0, 3))
)
TURNS = st.lists(st.tuples(WORDS, st.none() | WORDS, st.none() | STEPS), min_size=1, max_size=4)


def exported(folder: Path, dataset: dict[str, Any], name: str = "own.evalset.json") -> Outcome:
    (folder / name).unlink(missing_ok=True)
    (folder / "answers.jsonl").write_text('{"query_id": "x", "answer": "a"}\n', encoding="utf-8")
    text = {
        "name": "agent", "dataset": dataset, "services": {"judge": {"type": "lexical"}}, "judge": {"service": "judge"},
        "configurations": [{"name": "a", "answers": {"type": "replay", "path": "answers.jsonl"}}],
        "metrics": ["AnswerRelevance"], "output": {"path": "out"},
    }  # fmt: skip
    path = write(folder / "e.yaml", yaml.safe_dump(text))
    return rankbeam("evalset", path, "--output", str(folder / name))


def parts(case: Case) -> tuple[Any, ...]:
    return case.query_id, case.question, case.reference, case.expected_steps, case.attributes.get("history")


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@example(talks=[[("Who?", None, [])]])  # tool uses, and no response of any case
@given(talks=st.lists(TURNS, min_size=1, max_size=3))
def test_an_eval_set_is_the_same_after_reading_and_writing(talks: list[Any], tmp_path: Path) -> None:
    """Turns may lack answers and tool uses."""
    cases = []
    for number, turns in enumerate(talks):
        talk: list[dict[str, Any]] = []
        for question, answer, steps in turns:
            turn: dict[str, Any] = {"userContent": {"parts": [{"text": question}]}}
            turn |= {} if answer is None else {"finalResponse": {"parts": [{"text": answer}]}}
            uses = None if steps is None else [{"name": step["tool"], "args": step["args"]} for step in steps]
            turn |= {} if uses is None else {"intermediateData": {"toolUses": uses}}
            talk.append(turn)
        cases.append({"evalId": f"c{number}", "conversation": talk})
    source = tmp_path / "a.evalset.json"
    source.write_text(json.dumps({"evalSetId": "a", "evalCases": cases}), encoding="utf-8")
    done = exported(tmp_path, {"file": "a.evalset.json"})
    assert done.status == 0, done.stderr
    before, after = (
        list(map(parts, read_cases(CaseSource(str(tmp_path / name)))))
        for name in ("a.evalset.json", "own.evalset.json")
    )
    assert after == before
    assert f"{len(before)} queries in {len(talks)} cases" in done.stdout


def test_turns_that_are_no_queries_come_from_the_history_and_files_of_references_count(tmp_path: Path) -> None:
    history = [{"role": "user", "text": "Who?"}, {"role": "assistant", "text": "Ann."}]
    rows = [
        {"_id": "d2", "text": "Why?", "metadata": {"conversation": "d", "turn": 2, "history": history}},
        {"_id": "alone", "text": "When?"},
    ]
    write(tmp_path / "queries.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    gold = {"query_id": "d2", "answer": "Because.", "expected_steps": [{"tool": "find", "args": {"q": 1}}]}
    write(tmp_path / "gold.jsonl", json.dumps(gold) + "\n")
    done = exported(tmp_path, {"queries": "queries.jsonl", "answers": {"path": "gold.jsonl"}})
    assert done.stdout.endswith("own.evalset.json: 2 queries in 2 cases\n"), done.stderr
    value = json.loads((tmp_path / "own.evalset.json").read_text(encoding="utf-8"))
    assert (value["eval_set_id"], value["name"]) == ("own", "agent")
    talk, alone = value["eval_cases"]
    assert [turn["userContent"]["parts"][0]["text"] for turn in talk["conversation"]] == ["Who?", "Why?"]
    assert [turn["finalResponse"]["parts"][0]["text"] for turn in talk["conversation"]] == ["Ann.", "Because."]
    assert talk["conversation"][1]["intermediateData"]["toolUses"] == [{"name": "find", "args": {"q": 1}}]
    assert "intermediateData" not in talk["conversation"][0]
    assert (talk["evalId"], alone["evalId"], len(alone["conversation"])) == ("d", "alone", 1)


@pytest.mark.parametrize(
    ("rows", "name", "problem"),
    [
        ([{"_id": "a", "text": "x"}], "my-set.json", "write my_set.evalset.json"),
        ([{"_id": n, "text": n, "conversation": "c"} for n in "ab"], "s.json", "'a' and 'b' of the conversation 'c'"),
        ([{"_id": "a", "text": "x"}], "taken.evalset.json", "exists already"),
    ],
)  # fmt: skip
def test_what_would_be_lost_is_refused(tmp_path: Path, rows: list[Any], name: str, problem: str) -> None:
    write(tmp_path / "queries.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    first = exported(tmp_path, {"queries": "queries.jsonl"}, name)
    if "taken" in name:
        first = rankbeam("evalset", str(tmp_path / "e.yaml"), "--output", str(tmp_path / name))
    assert first.status == 2
    assert problem in first.stderr
