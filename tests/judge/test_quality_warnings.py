"""Warnings about a judge: versions and families."""

import pytest

from rankbeam.transforms.clients.models.base import ModelParameters
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.offline import Lexical
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.judge.answering import AnswerGenerator
from rankbeam.transforms.judge.judge import Judge, Model
from rankbeam.transforms.judge.measure import QualityRows
from rankbeam.transforms.judge.quality import (
    JudgeOfStep,
    Quality,
    StepQuality,
    circularity,
    self_preference,
    warnings_of,
)
from rankbeam.transforms.records.calls.prompt import Template
from rankbeam.transforms.records.stages import Generation

PRO = Gemini(model="gemini-x-pro", project="p", location="us-central1")
FLASH = Gemini(model="gemini-x-flash", project="p", location="us-central1")
OTHER = OpenAi(base_url="http://localhost/v1", model="acme/llama-9")


def model(parameters: ModelParameters) -> Model:
    return Model("m", "any", parameters)


@pytest.mark.parametrize("strict", [False, True])
def test_versions_of_a_judge_are_counted_over_all_steps(strict: bool) -> None:
    steps = {
        JudgeOfStep("grade", "j"): StepQuality(versions={"v1": 9, "v2": 1}),
        JudgeOfStep("support", "j"): StepQuality(versions={"v2": 4}),
    }
    table = QualityRows({"j": PRO.model}, {}).table(Quality(steps), {})
    assert [row["model_version"] for row in table.to_pylist()] == [None, "v2"]
    expected = "verdicts of 2 versions of the judge gemini-x-pro, in one comparison: v1 (9), v2 (5)"
    assert list(warnings_of(table, 0.95, strict=strict)) == ([] if strict else [expected])


def test_a_judge_of_the_family_that_answers_is_warned_of() -> None:
    warning = "gemini-x-pro judges answers of its own family (gemini), and may prefer them: a; "
    advice = "add a judge of another family: judge: [ONE, OTHER]"
    assert list(self_preference([model(PRO)], {"a": model(FLASH), "b": model(OTHER)})) == [warning + advice]
    other = Model("local", "any", OTHER)
    both = list(self_preference([model(PRO), other], {"a": model(FLASH)}))
    assert both == [f"{warning}compare with judge=local"]
    assert not list(self_preference([model(Lexical())], {"a": model(Lexical())}))


def test_models_and_templates_that_resemble_the_judge_are_named_where_it_fills_holes() -> None:
    grade = "Grade how well the passage serves the person who asked, from 0 to 3, and say why it does.\n---\n{context}"
    template = Template("grade", grade, "grade.txt", lambda *_: {})
    words = grade.split()
    answering = {
        0: AnswerGenerator(model(FLASH), Generation("m", "Answer {query}")),
        1: AnswerGenerator(model(OTHER), Generation("m", f"Answer {{query}}. {' '.join(words[:13])}")),
        2: AnswerGenerator(model(OTHER), Generation("m", f"Answer {{query}}. {' '.join(words[:12])} always")),
    }
    judge = Judge(model(PRO), {"grade": template})
    family, quote = circularity(judge, answering, ["a", "b", "c"])
    assert family == "holes=llm: the judge's grades may favour texts of models of its family (gemini) choose: a"
    assert "the template of b has 13 consecutive words of the judge's prompt" in quote
    assert not list(circularity(Judge(model(Lexical()), {"grade": template}), {2: answering[2]}, ["a", "b", "c"]))
