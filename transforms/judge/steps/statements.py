"""`statements`: the statements of an answer, as ragas counts them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankbeam.transforms.judge.steps.claims import how_many, statements_of
from rankbeam.transforms.judge.steps.support import supported_by_all
from rankbeam.transforms.records.forms import TEXT, Form, Text, list_of, object_of, parse_form
from rankbeam.transforms.records.judging.steps import (
    Imagined,
    Inquiry,
    JudgedCase,
    JudgedInput,
    JudgeQuestion,
    JudgeStep,
    Need,
    Share,
)


class _Statements(Form):
    statements: list[Text]


def _statements(case: JudgedCase) -> Inquiry:
    """Return bool[statements]: all contexts together support the statement."""
    if case.answer is None:
        return np.zeros(0, bool)
    question = JudgeQuestion(StatementsStep.name, (case.answer,))
    replies = yield [question]
    return (yield from supported_by_all(case, tuple(replies[question])))


class StatementsStep(JudgeStep):
    """Split an answer into statements."""

    name = "statements"
    variables = ("query", "answer")
    inputs = {  # noqa: RUF012
        "statements": JudgedInput(_statements, ("statements", "support"), frozenset({Need.ANSWER, Need.CONTEXTS}))
    }

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        return object_of(statements=list_of(TEXT))

    def read(self, values: Mapping[str, Any], text: str) -> tuple[str, ...]:  # noqa: ARG002
        return tuple(parse_form(_Statements, text).statements)

    def imagined(self, imagined: Imagined) -> tuple[str, ...]:
        return imagined.parts

    def imagined_parts(self, items: int, claims: int) -> int:  # noqa: ARG002
        return claims

    def known_class(self, reply: Sequence[str]) -> str:
        return how_many(reply)

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:  # noqa: ARG002
        return {"statements": statements_of(values["answer"])}
