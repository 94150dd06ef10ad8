"""`criterion`: a verdict on an aspect that the user names, about the texts that the user chooses."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from rankbeam.transforms.judge.steps.reading import offline_reason
from rankbeam.transforms.kernels.judged import Undefined
from rankbeam.transforms.records.calls.template import Template
from rankbeam.transforms.records.forms import TEXT, Form, malformed, object_of, parsed
from rankbeam.transforms.records.judging.criteria import Criterion
from rankbeam.transforms.records.judging.steps import (
    LONGEST_REASON,
    Imagined,
    Inquiry,
    JudgedCase,
    JudgedInput,
    JudgeQuestion,
    JudgeStep,
    JudgeVerdict,
    Need,
    Share,
)
from rankbeam.transforms.records.suggestions import shortened

_BETWEEN = " | "
_NEEDS = {
    "answer": Need.ANSWER,
    "reference": Need.REFERENCE,
    "context": Need.CONTEXTS,
    "contexts": Need.CONTEXTS,
}


@dataclass(frozen=True)
class ChosenVerdict:
    """A verdict, and its place on the scale from 0, the first, to 1, the last."""

    verdict: str
    place: Fraction
    reason: str


class _Chosen(Form):
    reason: str
    verdict: str | int


def input_of(criterion: Criterion) -> JudgedInput:
    """The argument that a criterion's metric needs: float[contexts] or float[1], values of the verdicts."""
    return JudgedInput(
        partial(_values, criterion),
        (criterion.step,),
        frozenset(_NEEDS[part] for part in criterion.about if part in _NEEDS),
        per_context="context" in criterion.about,
        by_people=False,
    )


def _values(criterion: Criterion, case: JudgedCase) -> Inquiry:
    """Return float[contexts], float[1], or the reason why there is nothing to judge."""
    if "answer" in criterion.about and case.answer is None:
        return Undefined.NO_ANSWER
    if not case.contexts and {"context", "contexts"} & set(criterion.about):
        return Undefined.NO_CONTEXTS
    judged_alone = case.contexts if "context" in criterion.about else (None,)
    questions = [_question(criterion, case, context) for context in judged_alone]
    replies = yield questions
    values = {"": 0.0, **dict(criterion.levels)}  # `plan` imagines no verdict
    return np.array([values[replies[question].verdict] for question in questions], float)


def _question(criterion: Criterion, case: JudgedCase, context: str | None) -> JudgeQuestion:
    of_case = {"query": case.query, "answer": case.answer, "reference": case.gold.reference, "context": context}
    texts = [{"id": part, "text": of_case[part] or ""} for part in criterion.about if part != "contexts"]
    if "contexts" in criterion.about:
        texts += [{"id": f"context {rank}", "text": text} for rank, text in enumerate(case.contexts, start=1)]
    judged = next((of_case[part] for part in ("context", "answer", "reference") if part in criterion.about), None)
    return JudgeQuestion(criterion.step, (judged or case.query, *instructions_of(criterion), json.dumps(texts)))


def instructions_of(criterion: Criterion) -> tuple[str, str, str]:
    """The values of the prompt that say what to judge: criterion, verdicts and examples."""
    return criterion.question, _BETWEEN.join(word for word, _ in criterion.levels), criterion.examples


def template_of(criterion: Criterion, template: Template) -> Template:
    """The template with the criterion's own words, whose hash tells criteria apart in tables; it is never filled in."""
    return replace(template, text="\n".join((template.text, *instructions_of(criterion), *criterion.about)))


class CriterionStep(JudgeStep):
    """Judge one aspect."""

    name = "criterion"
    variables = ("criterion", "verdicts", "examples", "texts")
    judges = True

    def values(self, question: JudgeQuestion, query: str) -> dict[str, Any]:  # noqa: ARG002
        """The aspect, the verdicts to choose from, examples of right ones, and the texts with their names."""
        _, criterion, verdicts, examples, texts = question.texts
        return {"criterion": criterion, "verdicts": verdicts, "examples": examples, "texts": json.loads(texts)}

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """A reason and one of the verdicts."""
        return object_of(reason=TEXT, verdict={"type": "string", "enum": values["verdicts"].split(_BETWEEN)})

    def read(self, values: Mapping[str, Any], text: str) -> ChosenVerdict:
        """The verdict."""
        reply, verdicts = parsed(_Chosen, text), values["verdicts"].split(_BETWEEN)
        verdict = str(reply.verdict).strip()
        if verdict not in verdicts:
            raise malformed(f"verdict: {shortened(verdict, 40)!r} is not one of {', '.join(verdicts)}")
        place = Fraction(verdicts.index(verdict), len(verdicts) - 1)
        return ChosenVerdict(verdict, place, shortened(reply.reason, LONGEST_REASON))

    def imagined(self, imagined: Imagined) -> ChosenVerdict:  # noqa: ARG002
        """A verdict whose value nothing depends on."""
        return ChosenVerdict("", Fraction(), "")

    def verdicts(self, reply: ChosenVerdict) -> Sequence[JudgeVerdict]:
        """The verdict."""
        return [JudgeVerdict(reply.verdict, reason=reply.reason, score=reply.place)]

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:
        """The verdict at the share of the first text's words that the last text has."""
        texts, verdicts = values["texts"], values["verdicts"].split(_BETWEEN)
        part = share(texts[0]["text"], texts[-1]["text"])
        return {"reason": offline_reason(part), "verdict": verdicts[min(len(verdicts) - 1, int(part * len(verdicts)))]}
