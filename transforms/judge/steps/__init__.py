"""The steps of the judge, one file each, with their prompts and known items beside them."""

from collections.abc import Iterator, Mapping
from functools import cache

from rankbeam.transforms.judge.steps.answer_kind import AnswerKindStep
from rankbeam.transforms.judge.steps.case import OF_CASE
from rankbeam.transforms.judge.steps.claims import ClaimsStep
from rankbeam.transforms.judge.steps.criterion import CriterionStep
from rankbeam.transforms.judge.steps.embed import EmbedStep
from rankbeam.transforms.judge.steps.grade import GradeStep
from rankbeam.transforms.judge.steps.nugget_assign import NuggetAssignStep
from rankbeam.transforms.judge.steps.nuggets import NuggetsStep, NuggetWeightStep
from rankbeam.transforms.judge.steps.questions import QuestionsStep
from rankbeam.transforms.judge.steps.sentences import SentencesStep
from rankbeam.transforms.judge.steps.statements import StatementsStep
from rankbeam.transforms.judge.steps.support import SupportStep
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.judging.registry import plugged_steps, register, step_of
from rankbeam.transforms.records.judging.steps import JudgedInput, JudgeStep

STEPS: tuple[JudgeStep, ...] = (
    ClaimsStep(),
    SupportStep(),
    GradeStep(),
    AnswerKindStep(),
    NuggetAssignStep(),
    NuggetsStep(),
    NuggetWeightStep(),
    StatementsStep(),
    QuestionsStep(),
    SentencesStep(),
    CriterionStep(),
    EmbedStep(),
)
"""The steps of rankbeam."""

register(*STEPS)

INPUTS: Mapping[str, JudgedInput] = {
    **OF_CASE,
    **{name: of for step in STEPS for name, of in step.inputs.items()},
}
"""The arguments of rankbeam's formulas, by name. Those of `support` are described in `kernels.judged`."""


def step_named(name: str) -> JudgeStep:
    """The step of that name, which exists."""
    step = step_of(name)
    assert step is not None, name  # noqa: S101  questions name steps that exist
    return step


def steps() -> Iterator[JudgeStep]:
    """All steps, those of other packages last."""
    yield from STEPS
    yield from plugged_steps()


@cache
def all_inputs() -> Mapping[str, JudgedInput]:
    """The arguments of formulas, by name, with those of other packages.

    Raises:
        InputError: two steps have an input of one name.
    """
    inputs = dict(INPUTS)
    for step in plugged_steps():
        for name, of in step.inputs.items():
            if name in inputs:
                raise InputError(f"rankbeam.judged {step.name!r}: another step has an input {name!r}; rename it")
            inputs[name] = of
    return inputs
