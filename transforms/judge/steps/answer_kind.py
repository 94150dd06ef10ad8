"""`answer_kind`: whether an answer answers, refuses or is off topic, and how relevant it is, from 0 to 3."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from rankbeam.transforms.judge.steps.grade import Level
from rankbeam.transforms.judge.steps.reading import LEVEL, SUPPORTED_SHARE, offline_grade, offline_reason, one_of
from rankbeam.transforms.kernels.judged import HIGHEST_GRADE, AnswerKind
from rankbeam.transforms.kernels.judged_refusals import has_words_of_refusal
from rankbeam.transforms.kernels.statistics.raters import decisive_vote
from rankbeam.transforms.records.conversations import HISTORY
from rankbeam.transforms.records.errors import CallError, FailureKind, shortened
from rankbeam.transforms.records.forms import TEXT, Form, object_of, parse_form
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


@dataclass(frozen=True)
class JudgedKind:
    """The kind of an answer, and how relevant it is, from 0 to 3."""

    kind: AnswerKind
    relevance: int
    reason: str


class _Kind(Form):
    reason: str
    kind: AnswerKind
    relevance: Level


def _judged_kind(case: JudgedCase) -> Inquiry:
    """A query without an answer, because nothing was retrieved, counts as refused."""
    if case.answer is None:
        return JudgedKind(AnswerKind.REFUSED, 0, "")
    question = JudgeQuestion(AnswerKindStep.name, (case.answer,))
    replies = yield [question]
    return replies[question]


def _kind(case: JudgedCase) -> Inquiry:
    return (yield from _judged_kind(case)).kind


def _relevance(case: JudgedCase) -> Inquiry:
    return (yield from _judged_kind(case)).relevance


_NEEDS = frozenset({Need.ANSWER})
_KINDS = tuple(kind for kind in AnswerKind if kind is not AnswerKind.CLARIFIED)  # the kinds outside of conversations


class AnswerKindStep(JudgeStep):
    """Judge how an answer responds to its question."""

    name = "answer_kind"
    variables = ("query", "answer")
    judges = True
    in_conversations = (
        "One more kind: clarified, where the question stays unclear even with the conversation, and the answer asks "
        "back instead of guessing. Such an answer is not off_topic, and its relevance is that of the question it asks. "
        "So kind is one of answered, partial, clarified, refused, off_topic."
    )
    decisions = tuple(kind.value for kind in _KINDS)
    people_question = "What does the answer do with the question?"
    inputs = {  # noqa: RUF012
        "kind": JudgedInput(_kind, ("answer_kind",), _NEEDS),
        "relevance": JudgedInput(_relevance, ("answer_kind",), _NEEDS, by_people=False),
        "answerable": JudgedInput(lambda case: case.gold.answerable, needs=frozenset({Need.ANSWERABLE})),
    }

    @property
    def scale(self) -> tuple[str, ...]:
        kind = AnswerKind
        return (kind.ANSWERED, kind.PARTIAL, kind.CLARIFIED, kind.OFF_TOPIC, kind.REFUSED)

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return object_of(reason=TEXT, kind=one_of(AnswerKind if HISTORY in values else _KINDS), relevance=LEVEL)

    def read(self, values: Mapping[str, Any], text: str) -> JudgedKind:
        reply = parse_form(_Kind, text)
        if reply.kind is AnswerKind.CLARIFIED and HISTORY not in values:
            raise CallError(FailureKind.MALFORMED, f"kind: write one of {', '.join(_KINDS)}")
        return JudgedKind(reply.kind, reply.relevance, shortened(reply.reason, LONGEST_REASON))

    def imagined(self, imagined: Imagined) -> JudgedKind:  # noqa: ARG002
        return JudgedKind(AnswerKind.ANSWERED, 0, "")

    def verdicts(self, reply: JudgedKind) -> Sequence[JudgeVerdict]:
        score = Fraction(reply.relevance, HIGHEST_GRADE)
        return [JudgeVerdict(reply.kind.value, reply.relevance, reply.reason, score)]

    def median(
        self,
        replies: Sequence[JudgedKind],
        voters: int,
        rank: Callable[[JudgeVerdict], float],  # noqa: ARG002  kind and relevance have scales of their own
    ) -> JudgedKind | None:
        """The lower medians of kind and relevance; an answer counts as refused if most judges say so."""
        kind = decisive_vote([self.scale.index(reply.kind) for reply in replies], voters)
        relevance = decisive_vote([reply.relevance for reply in replies], voters)
        if kind is None or relevance is None:
            return None
        return replace(replies[kind], relevance=replies[relevance].relevance)

    def decided(self, decisions: Sequence[str]) -> JudgedKind:
        return JudgedKind(AnswerKind(decisions[0]), 0, "")

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:
        if has_words_of_refusal(values["answer"]):
            return {"reason": "words of a refusal", "kind": AnswerKind.REFUSED, "relevance": 0}
        part = share(values["query"], values["answer"])
        kind = AnswerKind.ANSWERED if part >= SUPPORTED_SHARE else AnswerKind.PARTIAL if part else AnswerKind.OFF_TOPIC
        return {"reason": offline_reason(part), "kind": kind, "relevance": offline_grade(part)}
