"""`criterion`: a verdict on an aspect that the user describes, about texts that the user selects."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from rankbeam.transforms.judge.steps.reading import offline_reason
from rankbeam.transforms.kernels.judged import Undefined
from rankbeam.transforms.records.calls.prompt import Template
from rankbeam.transforms.records.errors import CallError, FailureKind, shortened
from rankbeam.transforms.records.forms import TEXT, Form, malformed, object_of, parse_form
from rankbeam.transforms.records.judging.answers import Judgement
from rankbeam.transforms.records.judging.criteria import (
    ANSWERS,
    PREFERENCES,
    STATEMENT,
    Criterion,
    shown,
    statements_of,
)
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

_BETWEEN = " | "
ALL = "all"  # the value with which the answers of all configurations are compared
_NEEDS = {
    "answer": Need.ANSWER,
    "reference": Need.REFERENCE,
    "context": Need.CONTEXTS,
    "contexts": Need.CONTEXTS,
}


@dataclass(frozen=True)
class ChosenVerdict:
    """A verdict, and its position on the scale, from 0 (first) to 1 (last)."""

    verdict: str
    place: Fraction
    reason: str


class _Chosen(Form):
    reason: str
    verdict: str | int


def input_of(criterion: Criterion) -> JudgedInput:
    """The argument that a criterion's metric needs: float[statements, contexts] or float[pairs], verdicts' values."""
    return JudgedInput(
        partial(_values, criterion),
        (criterion.step,),
        frozenset(_NEEDS[part] for part in criterion.about if part in _NEEDS),
        per_context="context" in criterion.about,
        by_people=criterion.pairs is None,
    )


def _values(criterion: Criterion, case: JudgedCase) -> Inquiry:
    """Return the argument, or the reason why nothing can be judged."""
    if "answer" in criterion.about and case.answer is None:
        return Undefined.NO_ANSWER
    if not case.contexts and {"context", "contexts"} & set(criterion.about):
        return Undefined.NO_CONTEXTS
    if criterion.pairs is not None:
        return (yield from _preferences(criterion, case))
    statements = (None,) if criterion.rubrics is None else _statements(case, criterion.rubrics)
    if not statements:
        return Undefined.NO_RUBRICS
    shown_alone = case.contexts if "context" in criterion.about else (None,)
    questions = [
        [_question(criterion, case, context, statement) for context in shown_alone] for statement in statements
    ]
    replies = yield [question for statement_questions in questions for question in statement_questions]
    values = {"": 0.0, **dict(criterion.levels)}  # `plan` imagines no verdict
    return np.array([[values[replies[question].verdict] for question in row] for row in questions], float)


def _statements(case: JudgedCase, attribute: str) -> tuple[str, ...]:
    try:
        return statements_of(case.attributes.get(attribute, ""))
    except ValueError as error:
        raise CallError(FailureKind.INVALID, f"not judged: the attribute {attribute!r} {error}", 0) from error


def _preferences(criterion: Criterion, case: JudgedCase) -> Inquiry:
    """Return float[pairs], from -1 (the other answer is better in both orders) to 1 (this one is)."""
    rivals = case.rivals if criterion.pairs == ALL else (case.baseline,)
    if failed := next((rival for rival in rivals if isinstance(rival, CallError)), None):
        raise failed
    if None in rivals or not rivals:
        return Undefined.NO_ANSWER
    questions = [
        None
        if rival == case.answer
        else (_pair_question(criterion, case, *pair), _pair_question(criterion, case, *pair[::-1]))
        for rival in rivals
        for pair in [(str(case.answer), str(rival))]
    ]
    replies = yield [question for pair in questions if pair is not None for question in pair]
    values, signs = {"": 0.0, **dict(PREFERENCES)}, []
    for pair in questions:
        one, other = (0.0, 0.0) if pair is None else (values[replies[question].verdict] for question in pair)
        signs.append(one if one == -other else 0.0)
    return np.array(signs)


def _question(criterion: Criterion, case: JudgedCase, context: str | None, statement: str | None) -> JudgeQuestion:
    case_texts = {"query": case.query, "answer": case.answer, "reference": case.gold.reference, "context": context}
    texts = [] if statement is None else [{"id": STATEMENT, "text": statement}]
    texts += [{"id": part, "text": case_texts[part] or ""} for part in criterion.about if part != "contexts"]
    if "contexts" in criterion.about:
        texts += [{"id": f"context {rank}", "text": text} for rank, text in enumerate(case.contexts, start=1)]
    judged = next((case_texts[part] for part in ("context", "answer", "reference") if part in criterion.about), None)
    values = (judged or case.query, *instructions_of(criterion), json.dumps(texts))
    return JudgeQuestion(criterion.step, values, () if statement is None else (statement,))


def _pair_question(criterion: Criterion, case: JudgedCase, first: str, second: str) -> JudgeQuestion:
    case_texts = {"query": case.query, "reference": case.gold.reference, ANSWERS[0]: first, ANSWERS[1]: second}
    texts = [{"id": part, "text": case_texts[part] or ""} for part in criterion.texts]
    return JudgeQuestion(criterion.step, (second, *instructions_of(criterion), json.dumps(texts)), (first,))


def in_both_orders(judgements: Iterable[Judgement]) -> tuple[int, int]:
    """The number of pairs of answers that were compared in both orders, and of those whose verdict changed."""
    words = _BETWEEN.join(word for word, _ in PREFERENCES)
    values, verdicts = dict(PREFERENCES), {}
    for judgement in judgements:
        if (
            judgement.items
            and judgement.verdict is not None
            and not judgement.is_repeat
            and judgement.texts[2] == words
        ):
            others = tuple(text for text in json.loads(judgement.texts[4]) if text["id"] not in ANSWERS)
            kind = (judgement.step, judgement.sample, json.dumps(others))
            verdicts[kind, judgement.items[0], judgement.texts[0]] = values[judgement.verdict.verdict]
    both = [
        (value, verdicts[kind, second, first])
        for (kind, first, second), value in verdicts.items()
        if first < second and (kind, second, first) in verdicts
    ]
    return len(both), sum(one != -other for one, other in both)


def is_example(judgement: Judgement) -> bool:
    """Return whether the texts of a criterion's judgement are also an example in its prompt."""
    *_, examples, texts = judgement.texts
    return bool(examples) and f"\n{shown((one['id'], one['text']) for one in json.loads(texts))}\nreason: " in examples


def instructions_of(criterion: Criterion) -> tuple[str, str, str]:
    """The prompt's values that describe what to judge: criterion, verdicts and examples."""
    return criterion.question, _BETWEEN.join(word for word, _ in criterion.levels), criterion.examples


def template_of(criterion: Criterion, template: Template) -> Template:
    """The template with the criterion's text; only its hash is used, to tell criteria apart in tables."""
    return replace(template, text="\n".join((template.text, *instructions_of(criterion), *criterion.texts)))


class CriterionStep(JudgeStep):
    """Judge one criterion."""

    name = "criterion"
    variables = ("criterion", "verdicts", "examples", "texts")
    judges = True

    def values(self, question: JudgeQuestion, query: str) -> dict[str, Any]:  # noqa: ARG002
        _, criterion, verdicts, examples, texts = question.texts
        return {"criterion": criterion, "verdicts": verdicts, "examples": examples, "texts": json.loads(texts)}

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return object_of(reason=TEXT, verdict={"type": "string", "enum": values["verdicts"].split(_BETWEEN)})

    def read(self, values: Mapping[str, Any], text: str) -> ChosenVerdict:
        reply, verdicts = parse_form(_Chosen, text), values["verdicts"].split(_BETWEEN)
        verdict = str(reply.verdict).strip()
        if verdict not in verdicts:
            raise malformed(f"verdict: {shortened(verdict, 40)!r} is not one of {', '.join(verdicts)}")
        place = Fraction(verdicts.index(verdict), len(verdicts) - 1)
        return ChosenVerdict(verdict, place, shortened(reply.reason, LONGEST_REASON))

    def imagined(self, imagined: Imagined) -> ChosenVerdict:  # noqa: ARG002
        """A verdict; nothing depends on its value."""
        return ChosenVerdict("", Fraction(), "")

    def verdicts(self, reply: ChosenVerdict) -> Sequence[JudgeVerdict]:
        return [JudgeVerdict(reply.verdict, reason=reply.reason, score=reply.place)]

    def labelled_text(self, question: JudgeQuestion) -> str:
        """All that a person reads: the criterion, its verdicts, and all texts."""
        _, criterion, verdicts, _, texts = question.texts
        return "\n".join((criterion, verdicts, texts))

    def decided(self, decisions: Sequence[str]) -> ChosenVerdict:
        """The verdict; no value depends on its position."""
        return ChosenVerdict(decisions[0], Fraction(), "")

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:
        """The verdict for the share of the first text's words in the last one; of two answers, the larger share."""
        texts, verdicts = values["texts"], values["verdicts"].split(_BETWEEN)
        shares = [share(texts[0]["text"], text["text"]) for text in texts if text["id"] in ANSWERS]
        if len(shares) > 1:
            larger = max(shares)
            verdict = "tie" if shares[0] == shares[1] else ANSWERS[shares.index(larger)]
            return {"reason": offline_reason(larger), "verdict": verdict}
        part = share(texts[0]["text"], texts[-1]["text"])
        return {"reason": offline_reason(part), "verdict": verdicts[min(len(verdicts) - 1, int(part * len(verdicts)))]}
