"""`nugget_assign`: how far an answer contains each nugget of the reference."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from rankbeam.transforms.judge.steps.reading import (
    SUPPORTED_SHARE,
    ItemVerdicts,
    ReasonedVerdict,
    VerdictsStep,
    offline_verdicts,
)
from rankbeam.transforms.kernels.judged import NuggetAssignment
from rankbeam.transforms.records.judging.steps import (
    Inquiry,
    JudgedCase,
    JudgedInput,
    JudgeQuestion,
    JudgeVerdict,
    Need,
    Share,
)

_SCORES: Mapping[NuggetAssignment, Fraction] = MappingProxyType(
    {
        NuggetAssignment.SUPPORT: Fraction(1),
        NuggetAssignment.PARTIAL: Fraction(1, 2),
        NuggetAssignment.NONE: Fraction(0),
    }
)
_MOST_WORDS = 0.75  # share of a nugget's words from which the offline judge takes it for supported


def _assigned(case: JudgedCase) -> Inquiry:
    nuggets = tuple(text for text, _ in case.gold.nuggets or ())
    if not nuggets or case.answer is None:
        return [NuggetAssignment.NONE] * len(nuggets)
    question = JudgeQuestion(NuggetAssignStep.name, (case.answer,), nuggets)
    replies = yield [question]
    return [one.verdict for one in replies[question]]


class NuggetAssignStep(VerdictsStep):
    """Assign nuggets to an answer."""

    name = "nugget_assign"
    variables = ("query", "answer", "nuggets")
    items = "nuggets"
    choices = NuggetAssignment
    form = ItemVerdicts[NuggetAssignment]
    expected = NuggetAssignment.NONE
    most_items = 10
    judges = True
    decisions = (NuggetAssignment.NONE.value, NuggetAssignment.PARTIAL.value, NuggetAssignment.SUPPORT.value)
    is_ordered = True
    people_question = "Does the text contain this fact: fully (support), in part (partial), or not (none)?"
    inputs = {  # noqa: RUF012
        "assigned": JudgedInput(_assigned, ("nugget_assign",), frozenset({Need.ANSWER, Need.NUGGETS})),
        "vital": JudgedInput(
            lambda case: np.array([vital for _, vital in case.gold.nuggets or ()], bool),
            needs=frozenset({Need.NUGGETS}),
        ),
    }

    def verdicts(self, reply: Sequence[ReasonedVerdict[NuggetAssignment]]) -> Sequence[JudgeVerdict]:
        return [JudgeVerdict(one.verdict.value, reason=one.reason, score=_SCORES[one.verdict]) for one in reply]

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:
        """Supported if the answer contains three quarters of the nugget's words, partially with half of them."""
        shares = {item: share(text, values["answer"]) for item, text in values["nuggets"].items()}
        return offline_verdicts(shares, {item: _offline(part) for item, part in shares.items()})


def _offline(share: float) -> NuggetAssignment:
    if share >= _MOST_WORDS:
        return NuggetAssignment.SUPPORT
    return NuggetAssignment.PARTIAL if share >= SUPPORTED_SHARE else NuggetAssignment.NONE
