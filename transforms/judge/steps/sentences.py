"""`sentences`: which sentences of the contexts an answer to the query needs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankbeam.transforms.judge.steps.reading import SUPPORTED_SHARE
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.forms import Form, list_of, malformed, object_of, parse_form, whole
from rankbeam.transforms.records.judging.steps import (
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


class _Sentences(Form):
    sentences: list[int]


def sentences_of(text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in sentences(text))


def _extracted(case: JudgedCase) -> Inquiry:
    """Return bool[sentences of all contexts]: whether the answer needs the sentence."""
    items = tuple(sentence for context in case.contexts for sentence in sentences_of(context))
    if not items:
        return np.zeros(0, bool)
    question = JudgeQuestion(SentencesStep.name, (), items)
    replies = yield [question]
    return np.array(replies[question], bool)


class SentencesStep(JudgeStep):
    """Select the sentences that are needed; the reply is a bool for each sentence."""

    name = "sentences"
    variables = ("query", "sentences")
    items = "sentences"
    lists_items = True
    inputs = {"extracted": JudgedInput(_extracted, ("sentences",), frozenset({Need.CONTEXTS}))}  # noqa: RUF012

    def schema(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return object_of(sentences=list_of(whole(1, len(values["sentences"]))))

    def read(self, values: Mapping[str, Any], text: str) -> tuple[bool, ...]:
        ids, count = parse_form(_Sentences, text).sentences, len(values["sentences"])
        if len(set(ids)) < len(ids) or not all(1 <= one <= count for one in ids):
            raise malformed(f"sentences: each id at most once, and from 1 to {count}; found {sorted(ids)[:10]}")
        return tuple(number in ids for number in range(1, count + 1))

    def imagined(self, imagined: Imagined) -> tuple[bool, ...]:
        return (False,) * imagined.items

    def imagined_parts(self, items: int, claims: int) -> int:
        """No numbers, or all."""
        return items if claims else 0

    def verdicts(self, reply: Sequence[bool]) -> Sequence[JudgeVerdict]:
        return [JudgeVerdict("needed" if is_needed else "not_needed") for is_needed in reply]

    def known_class(self, reply: Sequence[bool]) -> str:
        """The numbers of the sentences that are needed.

        >>> SentencesStep().known_class((True, False, True)), SentencesStep().known_class((False,))
        ('1, 3', 'none')
        """
        return ", ".join(str(number) for number, is_needed in enumerate(reply, start=1) if is_needed) or "none"

    def offline(self, values: Mapping[str, Any], share: Share) -> Mapping[str, Any]:
        shares = [share(values["query"], text) for text in values["sentences"]]
        return {"sentences": [number for number, part in enumerate(shares, start=1) if part >= SUPPORTED_SHARE]}
