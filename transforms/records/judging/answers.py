"""Answers of a configuration: what a model was given, what it said, and which contexts it refers to."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rankbeam.transforms.records.applications import INVENTED
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.rankings.contexts import Passage
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens
from rankbeam.transforms.records.trajectories import AgentSteps

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
    tokens: Tokens = NO_TOKENS
    error: CallError | None = None
    seconds: float | None = None  # duration of an application's call; None where it was not measured
    first_token_s: float | None = None
    steps: AgentSteps | None = None  # calls of tools; None where the system does not say them
    cost: float | None = None  # None without a price
    citations: tuple[int, ...] | None = None  # what an application says it cites; None for the numbers in the text

    @property
    def cited(self) -> tuple[int, ...]:
        if self.citations is not None:
            return tuple(dict.fromkeys(place for place in self.citations if place != INVENTED))
        return citations(self.text or "", len(self.contexts))

    @property
    def invented(self) -> int:
        """The number of contexts that the answer cites and that do not exist."""
        if self.citations is not None:
            return self.citations.count(INVENTED)
        return invented_citations(self.text or "", len(self.contexts))


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has: one for every four characters.

    >>> estimated_tokens("four letters"), estimated_tokens("")
    (3, 0)
    """
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def fitting(contexts: Sequence[Passage], most_tokens: int | None) -> int:
    """The number of first contexts that are together no longer than a limit; no context is cut.

    >>> long, short = Passage("a", "x" * 400), Passage("b", "x" * 40)
    >>> fitting([long, short], 110), fitting([long, short], 109), fitting([long, short], 50), fitting([long], None)
    (2, 1, 0, 1)
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

    An answer refers to contexts by their numbers, from 1, in square brackets. A number that no context has is none.

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
