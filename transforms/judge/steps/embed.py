"""`embed`: the embedding of a text, from the embedding model instead of the judge."""

from typing import Any

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.judged import Undefined, Value
from rankbeam.transforms.kernels.judged_ragas import cosine
from rankbeam.transforms.records.calls.prompt import EMBED
from rankbeam.transforms.records.judging.steps import (
    Imagined,
    Inquiry,
    JudgedCase,
    JudgedInput,
    JudgeQuestion,
    JudgeStep,
    Need,
)
from rankbeam.transforms.records.queries import mixed_lengths


def embed_question(text: str) -> JudgeQuestion:
    return JudgeQuestion(EMBED, (text,))


def similarity(a: FloatArray, b: FloatArray) -> Value:
    """The cosine of two replies."""
    if len(a) and len(b) and len(a) != len(b):
        raise mixed_lengths(len(a), len(b))
    return cosine(a, b)


def _similarity(case: JudgedCase) -> Inquiry:
    """The cosine of the answer and the reference answer."""
    texts = (case.answer, case.gold.reference) if case.gold.reference is not None else ()
    questions = [embed_question(text) for text in texts if text is not None]
    replies = yield questions
    if len(questions) < 2:
        return Undefined.NO_DIRECTION
    return similarity(*(replies[question] for question in questions))


class EmbedStep(JudgeStep):
    """Embed a text; the reply is its vector."""

    name = EMBED
    variables = ("text",)
    embeds = True
    inputs = {  # noqa: RUF012
        "similarity": JudgedInput(_similarity, (EMBED,), frozenset({Need.ANSWER, Need.REFERENCE, Need.EMBEDDINGS}))
    }

    def imagined(self, imagined: Imagined) -> Any:  # noqa: ARG002
        return np.zeros(0)  # without a direction beside the vectors of the ledger, however many dimensions they have
