"""The steps of the judge, one file each, with their prompts and known items beside them."""

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from rankbeam.transforms.judge.steps.answer_kind import AnswerKindStep
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
from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.kernels.overlap import without_citations
from rankbeam.transforms.kernels.trajectories import ToolCall
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.judging.answers import Answer
from rankbeam.transforms.records.judging.registry import GROUP, plugged_steps, register, step_of
from rankbeam.transforms.records.judging.steps import JudgedCase, JudgedInput, JudgeStep, Need
from rankbeam.transforms.records.plug_ins import plug_in_label
from rankbeam.transforms.records.trajectories import AgentSteps


def _cited(case: JudgedCase) -> BoolArray:
    cited = np.zeros(len(case.contexts), bool)
    cited[list(case.cited)] = True
    return cited


def _answer_text(case: JudgedCase) -> str:
    """Return the answer without its citations; nothing if nothing was retrieved, and so no model was asked."""
    return without_citations(case.answer or "")


def _samples(case: JudgedCase) -> list[str]:
    return [_answer_text(case), *map(without_citations, case.others)]


def _calls(steps: AgentSteps | None) -> list[ToolCall]:
    return [step.call for step in steps or ()]


def _outcome(case: JudgedCase) -> Answer:
    assert case.outcome is not None  # noqa: S101  metrics of answers alone ask for it
    return case.outcome


def _retrievals(case: JudgedCase) -> int:
    return sum(step.doc_ids is not None for step in _outcome(case).steps or ())


def _tokens(case: JudgedCase, name: str) -> int | None:
    """The answer's number of tokens; None if the service did not report it."""
    outcome = _outcome(case)
    count: int = getattr(outcome.tokens, name)
    return count if count or outcome.text is None else None


_NEEDS = frozenset({Need.ANSWER, Need.CONTEXTS})
_TEXTS = frozenset({Need.ANSWER, Need.REFERENCE})
_SAMPLES = frozenset({Need.ANSWER, Need.SAMPLES})
_ANSWER, _STEPS = frozenset({Need.ANSWER}), frozenset({Need.ANSWER, Need.STEPS})
_EXPECTED = frozenset({Need.ANSWER, Need.EXPECTED_STEPS})

OF_CASE: Mapping[str, JudgedInput] = {
    "cited": JudgedInput(_cited, needs=_NEEDS),
    "invented": JudgedInput(lambda case: case.invented, needs=_NEEDS),
    "answer": JudgedInput(_answer_text, needs=_TEXTS),
    "samples": JudgedInput(_samples, needs=_SAMPLES),
    "reference": JudgedInput(lambda case: case.gold.reference, needs=_TEXTS),
    "calls": JudgedInput(lambda case: _calls(_outcome(case).steps), needs=_STEPS),
    "expected_calls": JudgedInput(lambda case: _calls(case.gold.expected_steps), needs=_EXPECTED),
    "retrieving_calls": JudgedInput(_retrievals, needs=_STEPS),
    "input_tokens": JudgedInput(lambda case: _tokens(case, "input"), needs=_ANSWER),
    "output_tokens": JudgedInput(lambda case: _tokens(case, "output"), needs=_ANSWER),
    "cost": JudgedInput(lambda case: _outcome(case).cost, needs=_ANSWER),
    "seconds": JudgedInput(lambda case: _outcome(case).seconds, needs=_ANSWER),
}
"""`cited` is bool[contexts], `invented` the number of cited contexts that do not exist."""


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
"""The built-in steps."""

register(*STEPS)

INPUTS: Mapping[str, JudgedInput] = {
    **OF_CASE,
    **{name: of for step in STEPS for name, of in step.inputs.items()},
}
"""The arguments of rankbeam's formulas, by name. Those of `support` are described in `kernels.judged`."""


def step_named(name: str) -> JudgeStep:
    step = step_of(name)
    assert step is not None, name  # noqa: S101  questions name steps that exist
    return step


def steps() -> Iterator[JudgeStep]:
    """All steps, those of other packages last."""
    yield from STEPS
    yield from plugged_steps()


@cache
def all_inputs() -> Mapping[str, JudgedInput]:
    inputs = dict(INPUTS)
    for step in plugged_steps():
        for name, of in step.inputs.items():
            if name in inputs:
                raise InputError(f"{plug_in_label(GROUP, step.name)}: another step has an input {name!r}; rename it")
            inputs[name] = of
    return inputs
