"""The results of answering one query and judging the answers: values, and everything that they rest on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.judging.answers import Answer
from rankbeam.transforms.records.labels import Place
from rankbeam.transforms.records.reply import Tokens


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
    said: Any
    problem: str | None
    model_version: str | None
    tokens: Tokens
    known: KnownAnswer | None = None  # the right answer, of a known item; None of what is judged for the run's values
    judge: str = ""  # the service that was asked


@dataclass(frozen=True)
class LabelledVerdict:
    """The verdict of a judge, or of the majority (None), on something that people labelled."""

    place: Place
    verdict: str
    judge: str | None = None


@dataclass(frozen=True)
class Votes:
    """The verdicts of several judges on the same items of one query and step; None where a judge failed."""

    step: str
    query_id: str
    rows: tuple[tuple[str | None, ...], ...]  # for each item, the verdict of each judge


@dataclass(frozen=True)
class Evaluated:
    """The results of one item."""

    query_id: str
    reference: str | None
    answers: tuple[AnswerRow, ...]
    values: tuple[Value, ...]
    judgements: tuple[Judgement, ...]
    labelled: tuple[LabelledVerdict, ...] = ()
    votes: tuple[Votes, ...] = ()
    grades: tuple[tuple[str, int], ...] = ()  # documents that the judge graded, where these fill holes

    def texts(self) -> Mapping[str, None]:
        texts = [self.reference, *(answer.answer.text for answer in self.answers)]
        texts += [passage.text for answer in self.answers for passage in answer.answer.contexts]
        texts += [text for judgement in self.judgements for text in judgement.texts]
        return dict.fromkeys(text for text in texts if text is not None)
