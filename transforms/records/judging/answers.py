"""Answers of a configuration: the model's input and reply, and the contexts that the reply refers to."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.labels import Place
from rankbeam.transforms.records.rankings.contexts import Passage
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens
from rankbeam.transforms.records.trajectories import INVENTED, AgentSteps

CHARACTERS_PER_TOKEN = 4
_LEAST_YEAR = 1000
_CITATION = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")


class AnswerStatus(StrEnum):
    """The outcome of a question to a model."""

    OK = "ok"
    REFUSED = "refused"
    BLOCKED = "blocked"
    TRUNCATED = "truncated"
    FAILED = "failed"
    NO_CONTEXT = "no_context"


@dataclass(frozen=True)
class Answer:
    """The answer of one configuration to one query."""

    status: AnswerStatus
    text: str | None = None
    contexts: tuple[Passage, ...] = ()
    left_out: int = 0
    message: str | None = None
    model_version: str | None = None
    tokens: Tokens = NO_TOKENS  # tokens of all attempts
    attempts: int = 0
    error: CallError | None = None
    seconds: float | None = None  # duration of an application's call; None if it was not measured
    first_token_s: float | None = None
    steps: AgentSteps | None = None  # calls of tools; None if the system does not report them
    cost: float | None = None  # None without a price
    citations: tuple[int, ...] | None = None  # citations that an application reports; None for the numbers in the text

    @property
    def cited(self) -> tuple[int, ...]:
        if self.citations is not None:
            return tuple(dict.fromkeys(place for place in self.citations if place != INVENTED))
        return citations(self.text or "", len(self.contexts))

    @property
    def invented(self) -> int:
        if self.citations is not None:
            return self.citations.count(INVENTED)
        return invented_citations(self.text or "", len(self.contexts))


def estimated_tokens(text: str) -> int:
    """The approximate number of tokens of a text: one for every four characters.

    >>> estimated_tokens("four letters"), estimated_tokens("")
    (3, 0)
    """
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def fitting_count(contexts: Sequence[Passage], most_tokens: int | None) -> int:
    """The number of first contexts that are together no longer than a limit; no context is cut.

    >>> long, short = Passage("a", "x" * 400), Passage("b", "x" * 40)
    >>> [fitting_count([long, short], length) for length in (110, 109, 50, None)]
    [2, 1, 0, 2]
    """
    if most_tokens is None:
        return len(contexts)
    total = 0
    for count, passage in enumerate(contexts):
        total += estimated_tokens(passage.text or "")
        if total > most_tokens:
            return count
    return len(contexts)


def citations(text: str, count: int) -> tuple[int, ...]:
    """The positions, each once and in the order of the text, of the contexts that an answer refers to.

    An answer refers to contexts by their numbers, from 1, in square brackets. A number that no context has is left out.

    >>> citations("Ask the owner [2], who may [1, 2]; see [7] and [x].", 3)
    (1, 0)
    """
    return tuple(dict.fromkeys(number - 1 for number in _numbers(text) if 1 <= number <= count))


def invented_citations(text: str, count: int) -> int:
    """The number of different citations without a context; a number of four digits is a year, not a citation.

    >>> invented_citations("Ask the owner [2], who may [1, 7]; see [0] and [7]. Since [2019].", 3)
    2
    """
    return len({number for number in _numbers(text) if not 1 <= number <= count and number < _LEAST_YEAR})


def _numbers(text: str) -> Iterator[int]:
    return (int(number) for group in _CITATION.findall(text) for number in re.findall(r"\d+", group))


@dataclass(frozen=True)
class AnswerRow:
    """One answer of a configuration."""

    configuration: int
    sample: int  # number of the answer among several to one prompt, from 0
    answer: Answer


@dataclass(frozen=True)
class Value:
    """The value of a judged metric for one configuration."""

    configuration: int
    metric: str
    value: float | None
    reason: str | None = None
    error: CallError | None = None


@dataclass(frozen=True)
class KnownAnswer:
    """The expected verdict on a question to the judge."""

    id: str
    expected: str


@dataclass(frozen=True)
class Judgement:
    """The outcome of one question to the judge."""

    step: str
    key: str
    sample: int  # number of the judgement among several of one item, from 0
    is_repeat: bool
    texts: tuple[str, ...]
    items: tuple[str, ...]
    verdict: Any
    model_version: str | None
    tokens: Tokens
    known: KnownAnswer | None = None  # the right answer to a known item; None for items that enter values
    judge: str = ""  # the service that judged
    attempts: int = 0


@dataclass(frozen=True)
class LabelledVerdict:
    """The verdict of a judge, or of the majority (None), on something that people labelled."""

    place: Place
    verdict: str
    judge: str | None = None


@dataclass(frozen=True)
class Votes:
    """The verdicts of several judges on the same items of one query and step; None if a judge failed."""

    step: str
    query_id: str
    rows: tuple[tuple[str | None, ...], ...]  # for each item, the verdict of each judge


@dataclass(frozen=True)
class EvaluatedItem:
    """The results of one item."""

    query_id: str
    reference: str | None
    answers: tuple[AnswerRow, ...]
    values: tuple[Value, ...]
    judgements: tuple[Judgement, ...]
    labelled: tuple[LabelledVerdict, ...] = ()
    votes: tuple[Votes, ...] = ()
    grades: tuple[tuple[str, int], ...] = ()  # documents that the judge graded, if these fill holes

    def texts(self) -> Mapping[str, None]:
        texts = [self.reference, *(answer.answer.text for answer in self.answers)]
        texts += [passage.text for answer in self.answers for passage in answer.answer.contexts]
        texts += [text for judgement in self.judgements for text in judgement.texts]
        return dict.fromkeys(text for text in texts if text is not None)
