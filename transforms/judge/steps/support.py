"""`support`: whether a text supports, contradicts or does not state each of some claims."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from rankbeam.transforms.judge.steps.claims import ClaimsStep, claims_question
from rankbeam.transforms.judge.steps.reading import (
    SUPPORTED_SHARE,
    ItemVerdicts,
    ReasonedVerdict,
    VerdictsStep,
    offline_verdicts,
)
from rankbeam.transforms.judge.steps.sentences import sentences_of
from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.records.judging.steps import (
    Inquiry,
    JudgedCase,
    JudgedInput,
    JudgeQuestion,
    JudgeReplies,
    JudgeVerdict,
    Need,
    Share,
)

Texts = tuple[str, ...]


class SupportVerdict(StrEnum):
    """The verdict of a text on a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_STATED = "not_stated"


def support_question(items: Texts, evidence: str) -> list[JudgeQuestion]:
    """The question whether a text supports items; none if there are no items."""
    return [JudgeQuestion(SupportStep.name, (evidence,), items)] if items else []


def is_supported(replies: JudgeReplies, items: Texts, evidence: str) -> BoolArray:
    (verdicts,) = [replies[question] for question in support_question(items, evidence)] or [()]
    return np.array([one.verdict is SupportVerdict.SUPPORTED for one in verdicts], bool)


def _claims(text: str | None) -> Inquiry:
    if text is None:
        return ()
    question = claims_question(text)
    replies = yield [question]
    return tuple(claim.text for claim in replies[question])


def _by_context(owner: Callable[[JudgedCase], str | None]) -> Callable[[JudgedCase], Inquiry]:
    """Return bool[claims, contexts]: the context supports the claim."""

    def inquire(case: JudgedCase) -> Inquiry:
        claims = yield from _claims(owner(case))
        replies = yield [question for context in case.contexts for question in support_question(claims, context)]
        matrix = np.zeros((len(claims), len(case.contexts)), bool)
        for place, context in enumerate(case.contexts):
            matrix[:, place] = is_supported(replies, claims, context)
        return matrix

    return inquire


def _by_text(
    owner: Callable[[JudgedCase], str | None], evidence: Callable[[JudgedCase], str | None]
) -> Callable[[JudgedCase], Inquiry]:
    """Return bool[claims]: the other text supports the claim."""

    def inquire(case: JudgedCase) -> Inquiry:
        claims, text = (yield from _claims(owner(case))), evidence(case)
        if text is None:
            return np.zeros(len(claims), bool)
        replies = yield support_question(claims, text)
        return is_supported(replies, claims, text)

    return inquire


def _answer(case: JudgedCase) -> str | None:
    return case.answer


def _reference(case: JudgedCase) -> str | None:
    return case.gold.reference


def supported_by_all(case: JudgedCase, items: Texts) -> Inquiry:
    """Return bool[items]: all contexts together support the item."""
    if not case.contexts:
        return np.zeros(len(items), bool)
    evidence = "\n\n".join(case.contexts)
    replies = yield support_question(items, evidence)
    return is_supported(replies, items, evidence)


def _attributed(case: JudgedCase) -> Inquiry:
    return supported_by_all(case, sentences_of(case.gold.reference or ""))


_WEIGHTS = (SupportVerdict.NOT_STATED, SupportVerdict.CONTRADICTED, SupportVerdict.SUPPORTED)
_STEPS = (ClaimsStep.name, "support")
_A, _C, _G = Need.ANSWER, Need.CONTEXTS, Need.REFERENCE


class SupportStep(VerdictsStep):
    """Judge claims by a text. In names of inputs, a, g and c are answer, reference answer and contexts."""

    name = "support"
    variables = ("query", "evidence", "claims")
    items = "claims"
    choices = SupportVerdict
    form = ItemVerdicts[SupportVerdict]
    expected = SupportVerdict.SUPPORTED
    most_items = 60  # reasons of 40 words for more of them exceed 4,096 tokens
    in_parts = True
    judges = True
    decisions = (SupportVerdict.CONTRADICTED.value, SupportVerdict.NOT_STATED.value, SupportVerdict.SUPPORTED.value)
    people_question = "Does the text support the claim?"
    inputs = {  # noqa: RUF012
        "ac": JudgedInput(_by_context(_answer), _STEPS, frozenset({_A, _C}), per_context=True),
        "gc": JudgedInput(_by_context(_reference), _STEPS, frozenset({_G, _C}), per_context=True),
        "ag": JudgedInput(_by_text(_answer, _reference), _STEPS, frozenset({_A, _G})),
        "ga": JudgedInput(_by_text(_reference, _answer), _STEPS, frozenset({_A, _G})),
        "attributed": JudgedInput(_attributed, ("support",), frozenset({_G, _C}), by_people=False),
    }

    def verdicts(self, reply: Sequence[ReasonedVerdict[SupportVerdict]]) -> Sequence[JudgeVerdict]:
        supports = SupportVerdict.SUPPORTED
        return [
            JudgeVerdict(one.verdict.value, reason=one.reason, score=Fraction(one.verdict is supports)) for one in reply
        ]

    def weight(self, part: ReasonedVerdict[SupportVerdict]) -> float:
        """A claim is supported if any part of the text supports it, and else contradicted if any contradicts it."""
        return _WEIGHTS.index(part.verdict)

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:
        """Supported if half of the claim's words are in the evidence; never contradicted."""
        shares = {item: share(text, values["evidence"]) for item, text in values["claims"].items()}
        supports, states_not = SupportVerdict.SUPPORTED, SupportVerdict.NOT_STATED
        return offline_verdicts(
            shares, {item: supports if part >= SUPPORTED_SHARE else states_not for item, part in shares.items()}
        )
