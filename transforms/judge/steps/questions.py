"""`questions`: questions that an answer would answer; their similarity to the query is the answer's relevance."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from rankbeam.transforms.judge.steps.claims import statements_of
from rankbeam.transforms.judge.steps.embed import EmbedStep, embed_question, similarity
from rankbeam.transforms.kernels.judged_refusals import has_words_of_refusal
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

QUESTIONS = 3  # the number of questions generated from one answer


class GeneratedQuestion(Form):
    """A question that an answer would answer; noncommittal if the answer is evasive."""

    question: Text
    noncommittal: bool


class _Questions(Form):
    questions: Annotated[list[GeneratedQuestion], Field(min_length=QUESTIONS, max_length=QUESTIONS)]


def _noncommittal(case: JudgedCase) -> Inquiry:
    """Return bool[questions]."""
    questions = _questions(case)
    replies = yield questions
    return np.array([one.noncommittal for question in questions for one in replies[question]], bool)


def _cosines(case: JudgedCase) -> Inquiry:
    """The cosine of the query and each generated question."""
    questions, query = _questions(case), embed_question(case.query)
    replies = yield [query, *questions]
    generated = [embed_question(one.question) for question in questions for one in replies[question]]
    replies = yield generated
    vector = replies[query]
    return [similarity(vector, replies[question]) for question in generated]


def _questions(case: JudgedCase) -> list[JudgeQuestion]:
    return [] if case.answer is None else [JudgeQuestion(QuestionsStep.name, (case.answer,))]


class QuestionsStep(JudgeStep):
    """Generate questions from an answer alone, without the query."""

    name = "questions"
    variables = ("answer",)
    inputs = {  # noqa: RUF012
        "cosines": JudgedInput(_cosines, ("questions", EmbedStep.name), frozenset({Need.ANSWER, Need.EMBEDDINGS})),
        "noncommittal": JudgedInput(_noncommittal, ("questions",), frozenset({Need.ANSWER})),
    }

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002
        question = object_of(question=TEXT, noncommittal={"type": "boolean"})
        return object_of(questions=list_of(question, QUESTIONS))

    def read(self, values: Mapping[str, Any], text: str) -> tuple[GeneratedQuestion, ...]:  # noqa: ARG002
        return tuple(parse_form(_Questions, text).questions)

    def imagined(self, imagined: Imagined) -> tuple[GeneratedQuestion, ...]:
        """Questions that differ from those of every other answer."""
        names = (f"{number} of {imagined.key}" for number in range(QUESTIONS))
        return tuple(GeneratedQuestion(question=name, noncommittal=False) for name in names)

    def known_class(self, reply: Sequence[GeneratedQuestion]) -> str:
        return "noncommittal" if all(question.noncommittal for question in reply) else "committal"

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:  # noqa: ARG002
        texts = statements_of(values["answer"]) or [values["answer"]]
        evades = has_words_of_refusal(values["answer"])
        chosen = [texts[number % len(texts)] for number in range(QUESTIONS)]
        return {"questions": [{"question": f"{text.rstrip('.!? ')}?", "noncommittal": evades} for text in chosen]}
