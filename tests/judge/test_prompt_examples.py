"""Versions of the judge's prompts, and the examples in them."""

import json
from pathlib import Path

import pytest
from support.inputs import write
from support.judging import VARIABLES

from rankbeam.transforms.judge import steps
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.templates import VERSIONS, built_in_templates, templates
from rankbeam.transforms.records.calls.prompt import FENCE, check_template, split_template
from rankbeam.transforms.records.errors import InputError

V1_HASHES = {
    "answer_kind": "e5f77ff383107468",
    "claims": "25785cbad9712c41",
    "criterion": "641b3f898585318e",
    "grade": "c58709175f6a441d",
    "nugget_assign": "9fc34b3f71df4c93",
    "questions": "f7be56fc19e79c71",
    "sentences": "b47b2a6cb77ff73d",
    "statements": "e9134ff14294d021",
    "support": "4a66728f2776da86",
}
"""Parts of the keys of all verdicts in old ledgers."""
EXAMPLES = Path(str(steps.__file__)).parent / "examples"
V1_ONLY = ("nuggets", "nugget_weight")
WITH_EXAMPLES = ("claims", "grade", "support")
LINE = {"query": "Who?", "context": "Ada {did} it.", "reply": {"reason": "r", "intent": 3, "trust": 3, "grade": 3}}


def test_the_first_version_never_changes() -> None:
    assert {step: template.hash for step, template in built_in_templates(1).items() if step not in V1_ONLY} == V1_HASHES
    assert templates("v1") == {**built_in_templates(1)}
    assert templates() == templates("v2") == {**built_in_templates(2)}


def test_the_second_version_says_the_language_and_what_layout_is() -> None:
    assert set(built_in_templates(2)) == set(built_in_templates(1)) == set(VARIABLES)
    for step, template in built_in_templates(2).items():
        check_template(template.text, (*VARIABLES[step], FENCE))
        system, user = split_template(template.text)
        assert user == split_template(built_in_templates(1)[step].text)[1]
        if step in V1_ONLY:
            assert template.hash == built_in_templates(1)[step].hash
            continue
        assert "Citation marks" in system
        assert "language" in system
        assert template.hash != built_in_templates(1)[step].hash
        assert ("Examples of right replies" in system) == (step in WITH_EXAMPLES)


@pytest.mark.parametrize("step", WITH_EXAMPLES)
def test_shipped_examples_are_right_replies(step: str) -> None:
    rows = [json.loads(line) for line in (EXAMPLES / f"{step}.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 3
    for row in rows:
        numbered = {str(place): item for place, item in enumerate(row.get("claims", []))}
        reply = step_named(step).read({**row, "claims": numbered}, json.dumps(row["reply"]))
        if step == "claims":
            assert all(claim.start is not None for claim in reply)
        rendered = built_in_templates(2)[step].prompt({**row, **({"claims": numbered} if numbered else {})}).rendered()
        assert json.dumps(row["reply"], ensure_ascii=False) in rendered.system


def test_own_examples_replace_the_shipped_ones_of_their_step(tmp_path: Path) -> None:
    write(tmp_path / "grade.jsonl", json.dumps(LINE) + "\n")
    for version in VERSIONS:
        prompts = templates(version, str(tmp_path))
        system = prompts["grade"].prompt({"query": "q", "context": "c"}).rendered().system
        assert "query: Who?\ncontext: Ada {did} it.\nreply: " in system
        assert "cancel for free" not in system
        assert prompts["support"] == templates(version)["support"]
        assert prompts["grade"].hash != templates(version)["grade"].hash


def test_examples_follow_a_users_own_prompt(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    write(tmp_path / "prompts" / "grade.txt", "Grade.\n---\n{query} {context}")
    write(tmp_path / "grade.jsonl", json.dumps(LINE) + "\n")
    text = templates(str(tmp_path / "prompts"), str(tmp_path))["grade"].text
    assert text.startswith("Grade.\n\nExamples of right replies")
    assert text.endswith("\n---\n{query} {context}")


@pytest.mark.parametrize("separator", ["---", "--- "])
def test_a_rule_in_an_example_does_not_end_the_instructions(tmp_path: Path, separator: str) -> None:
    (tmp_path / "prompts").mkdir()
    write(tmp_path / "prompts" / "grade.txt", f"Grade.\n{separator}\n{{query}} {{context}}")
    write(tmp_path / "grade.jsonl", json.dumps({**LINE, "context": "Ada\n---\ndid it."}) + "\n")
    rendered = (
        templates(str(tmp_path / "prompts"), str(tmp_path))["grade"].prompt({"query": "q", "context": "c"}).rendered()
    )
    assert "Ada\n ---\ndid it.\nreply: " in rendered.system
    assert rendered.user == "q c"


@pytest.mark.parametrize(
    ("name", "line", "problem"),
    [
        ("grades", LINE, "no step of the judge is called 'grades'; did you mean 'grade'?"),
        ("criterion", LINE, "a criterion names its examples itself: judge.criteria.NAME.examples"),
        ("grade", {"query": "q"}, "grade.jsonl:1: expected an object with query, context, reply"),
        ("grade", {**LINE, "context": 1}, "grade.jsonl:1: context is not a text"),
        ("grade", {**LINE, "reply": {"grade": 9}}, "grade.jsonl:1: the reply cannot be read: "),
        ("support", {"query": "", "evidence": "", "claims": "a", "reply": {}}, "claims is not a list of texts"),
    ],
)
def test_an_example_that_cannot_work_is_refused(tmp_path: Path, name: str, line: object, problem: str) -> None:
    write(tmp_path / f"{name}.jsonl", json.dumps(line) + "\n")
    with pytest.raises(InputError) as caught:
        templates("v1", str(tmp_path))
    assert problem in str(caught.value)


def test_a_folder_or_a_file_without_examples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no examples; name the files after steps"):
        templates("v2", str(tmp_path))
    write(tmp_path / "grade.jsonl", "\n")
    with pytest.raises(InputError, match="holds no example"):
        templates("v2", str(tmp_path))
