"""Warnings about a judge: versions, families, and gates that its noise can decide."""

from types import SimpleNamespace
from typing import Any

import pytest

from rankbeam.pipelines.gates.checks import noise_warnings
from rankbeam.pipelines.gates.gates import Gate
from rankbeam.transforms.clients.models.base import ModelParameters
from rankbeam.transforms.clients.models.gemini import Gemini
from rankbeam.transforms.clients.models.offline import Lexical
from rankbeam.transforms.clients.models.openai import OpenAi
from rankbeam.transforms.judge.answering import Answering
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
        0: Answering(model(FLASH), Generation("m", "Answer {query}")),
        1: Answering(model(OTHER), Generation("m", f"Answer {{query}}. {' '.join(words[:13])}")),
        2: Answering(model(OTHER), Generation("m", f"Answer {{query}}. {' '.join(words[:12])} always")),
    }
    judge = Judge(model(PRO), {"grade": template})
    family, quote = circularity(judge, answering, ["a", "b", "c"])
    assert family == "holes=llm: the judge's grades may favour texts of models of its family (gemini) choose: a"
    assert "the template of b has 13 consecutive words of the judge's prompt" in quote
    assert not list(circularity(Judge(model(Lexical()), {"grade": template}), {2: answering[2]}, ["a", "b", "c"]))


def run(detectable: float, within_sd: float | None, samples: int = 1) -> Any:
    """A run whose gated comparison is over 50 queries; others detect all. Its judge asks about claims."""
    others = [("AP", "all", 1e-9), ("Faithfulness", "kind=a", 1e-9), ("Faithfulness", "all", None)]
    rows = [
        SimpleNamespace(metric=metric, slice=name, queries=50, detectable=least)
        for metric, name, least in (*others, ("Faithfulness", "all", detectable))
    ]
    quality = [{"step": "support", "within_sd": within_sd}, {"step": "grade", "within_sd": 0.9}]
    return SimpleNamespace(
        comparisons=rows, judge_quality=quality, slices=["all", "kind=a"], judge_settings={"samples": samples}
    )


def test_a_gate_whose_metric_detects_less_than_the_judges_noise_is_warned_of() -> None:
    gates = [Gate("Faithfulness", "difference_low", -0.01, at_least=True), Gate("AP", "mean", 0.1, at_least=True)]
    # 1.96 · 0.15 · sqrt(2 / 50) = 0.0588
    (warning,) = noise_warnings(run(0.05, 0.15), gates, 0.95)
    difference = "the gate on Faithfulness can detect a difference of 0.0500"
    expected = f"{difference}, but repeating the judge's verdicts may cause one of 0.0588"
    assert warning.startswith(expected)
    assert not list(noise_warnings(run(0.06, 0.15), gates, 0.95))
    assert not list(noise_warnings(run(0.05, 0.15, samples=2), gates, 0.95))
    assert not list(noise_warnings(run(0.05, None), gates, 0.95))
    assert not list(noise_warnings(run(0.05, 0.15), gates[1:], 0.95))
