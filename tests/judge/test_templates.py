"""The judge's prompts: one for every step, with the constant part first, and users may bring their own."""

from pathlib import Path
from typing import Any

import pytest
from support.judging import VARIABLES

from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.templates import built_in_templates, templates
from rankbeam.transforms.records.calls.prompt import FENCE, check_template, split_template
from rankbeam.transforms.records.errors import InputError

VALUES: dict[str, Any] = {
    "query": "THE QUERY", "text": "THE TEXT", "evidence": "THE EVIDENCE", "context": "THE CONTEXT",
    "answer": "THE ANSWER", "claims": {"0": "CLAIM 0", "1": "CLAIM 1"}, "nuggets": {"0": "NUGGET 0"},
    "sentences": ["SENTENCE 1", "SENTENCE 2"], "contexts": {"0": "THE CONTEXT 0", "1": "THE CONTEXT 1"},
}  # fmt: skip


def test_there_is_one_template_for_every_step() -> None:
    assert set(built_in_templates()) == set(VARIABLES)
    assert len({template.hash for template in built_in_templates().values()}) == len(VARIABLES)


@pytest.mark.parametrize("step", sorted(VARIABLES.keys() - {"criterion"}))  # its instructions are the experiment's
def test_instructions_stand_in_the_system_and_data_is_fenced_in_the_user_text(step: str) -> None:
    template = built_in_templates()[step]
    check_template(template.text, (*VARIABLES[step], FENCE))
    system, _ = split_template(template.text)
    prompt = template.prompt({name: VALUES[name] for name in VARIABLES[step]})
    rendered = prompt.rendered()
    assert "{" not in system.replace("{{", "")  # constant, so that services can cache it
    assert "data" in system
    assert '{"' in rendered.system
    sections = rendered.user.split("\n\n")
    assert len(sections) == len(VARIABLES[step])
    for section, name in zip(sections, VARIABLES[step], strict=True):
        first, *middle, last = section.splitlines()
        assert (first, last) == (f"<<{name} {prompt.fence}", f"{prompt.fence} {name}>>")
        assert middle[0].lstrip("[012] ").startswith(("THE", "CLAIM", "NUGGET", "SENTENCE"))
    assert prompt.schema == step_named(step).schema(prompt.values)


def test_a_user_brings_own_templates_for_some_steps(tmp_path: Path) -> None:
    (tmp_path / "grade.txt").write_text("Grade.\n---\n{query} {context}", encoding="utf-8")
    prompts = templates(str(tmp_path))
    assert prompts["grade"].text.startswith("Grade.")
    assert prompts["support"] == built_in_templates()["support"]
    assert prompts["grade"].hash != built_in_templates()["grade"].hash


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("grades.txt", "{context}", "no step of the judge is called 'grades'; did you mean 'grade'?"),
        ("grade.v2.txt", "a\n{contxt}", "grade.v2.txt:2: unknown variable {contxt}; did you mean 'context'?"),
        ("grade.txt", "{query}", "grade.txt: lacks {context}: the judge would not see it"),
    ],
)
def test_a_template_that_cannot_work_is_refused(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        templates(str(tmp_path))
    assert problem in str(caught.value)


def test_two_templates_of_a_step_and_a_folder_without_any_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no template"):
        templates(str(tmp_path))
    for name in ("grade.v1.txt", "grade.v2.txt"):
        (tmp_path / name).write_text("{context}", encoding="utf-8")
    with pytest.raises(InputError, match=r"a second template of grade, in addition to grade\.v1\.txt"):
        templates(str(tmp_path))
