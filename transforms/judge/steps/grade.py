"""`grade`: how useful one context is to the person who asked, from 0 to 3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from rankbeam.transforms.judge.steps.reading import LEVEL, offline_grade, offline_reason
from rankbeam.transforms.kernels.judged import HIGHEST_GRADE
from rankbeam.transforms.records.errors import shortened
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

Level = Annotated[int, Field(ge=0, le=HIGHEST_GRADE)]  # a grade of a reply


@dataclass(frozen=True)
class ContextGrade:
    """The grade of a context for a query, from 0 to 3."""

    grade: int
    reason: str


class _Grade(Form):
    reason: str
    intent: Level  # as trust, only for the judge to think of: no metric uses them
    trust: Level
    grade: Level


def _grades(case: JudgedCase) -> Inquiry:
    """Return int64[contexts]."""
    questions = [JudgeQuestion(GradeStep.name, (context,)) for context in case.contexts]
    replies = yield questions
    return np.array([replies[question].grade for question in questions], np.int64)


class GradeStep(JudgeStep):
    """Grade a context."""

    name = "grade"
    variables = ("query", "context")
    in_parts = True
    judges = True
    decisions = tuple(map(str, range(HIGHEST_GRADE + 1)))
    is_ordered = True
    people_question = (
        "How well does the text serve the person who asked? 0 has nothing to do with the question, 1 is related and "
        "does not answer, 2 answers in part or unclearly, 3 answers."
    )
    inputs = {  # noqa: RUF012
        "grades": JudgedInput(_grades, ("grade",), frozenset({Need.CONTEXTS}), per_context=True)
    }

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        return object_of(reason=TEXT, intent=LEVEL, trust=LEVEL, grade=LEVEL)

    def read(self, values: Mapping[str, Any], text: str) -> ContextGrade:  # noqa: ARG002
        reply = parse_form(_Grade, text)
        return ContextGrade(reply.grade, shortened(reply.reason, LONGEST_REASON))

    def imagined(self, imagined: Imagined) -> ContextGrade:  # noqa: ARG002
        return ContextGrade(0, "")

    def verdicts(self, reply: ContextGrade) -> Sequence[JudgeVerdict]:
        score = Fraction(reply.grade, HIGHEST_GRADE)
        return [JudgeVerdict(grade=reply.grade, reason=reply.reason, score=score)]

    def weight(self, part: ContextGrade) -> float:
        """A context gets the grade of its best part."""
        return part.grade

    def decided(self, decisions: Sequence[str]) -> ContextGrade:
        return ContextGrade(int(decisions[0]), "")

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:
        part = share(values["query"], values["context"])
        level = offline_grade(part)
        return {"reason": offline_reason(part), "intent": level, "trust": level, "grade": level}
