"""What comes of answering one query and judging the answers: values, and everything that they rest on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.records.answers import Answer
from rankbeam.transforms.records.calls.reply import Tokens
from rankbeam.transforms.records.errors import CallError


@dataclass(frozen=True)
class AnswerRow:
    """One answer of a configuration.

    Attributes:
        configuration: its position.
        sample: number of the answer among several to one prompt, from 0.
        answer: the answer.
    """

    configuration: int
    sample: int
    answer: Answer


@dataclass(frozen=True)
class Value:
    """The value of a judged metric for one configuration.

    Attributes:
        configuration: its position.
        metric: the canonical name.
        value: the mean over samples; None where there is none.
        reason: why there is none.
        error: that is the reason, where a call failed; None where the value does not exist.
    """

    configuration: int
    metric: str
    value: float | None
    reason: str | None = None
    error: CallError | None = None


@dataclass(frozen=True)
class Known:
    """What is known of a question to the judge beforehand.

    Attributes:
        id: of the known item, such as "support-01".
        expected: the class of the right answer.
    """

    id: str
    expected: str


@dataclass(frozen=True)
class Judgement:
    """What became of one question to the judge.

    Attributes:
        step: of the judge.
        key: the content key of the call.
        sample: number of the judgement among several of one item, from 0.
        is_repeat: it only shows how far the judge repeats itself, and no value rests on it.
        texts: that it is about.
        items: the claims or other parts that have a verdict each.
        said: what was read; None where the call failed.
        problem: why it failed.
        model_version: that judged, as the service named it.
        tokens: that the call took.
        known: the right answer, of a known item; None of what is judged for the run's values.
    """

    step: str
    key: str
    sample: int
    is_repeat: bool
    texts: tuple[str, ...]
    items: tuple[str, ...]
    said: Any
    problem: str | None
    model_version: str | None
    tokens: Tokens
    known: Known | None = None


@dataclass(frozen=True)
class Evaluated:
    """What comes of one item.

    Attributes:
        query_id: of the query.
        reference: the reference answer.
        answers: of every configuration that has one.
        values: of every configuration and judged metric.
        judgements: that the values rest on, each question once.
    """

    query_id: str
    reference: str | None
    answers: tuple[AnswerRow, ...]
    values: tuple[Value, ...]
    judgements: tuple[Judgement, ...]

    def texts(self) -> Mapping[str, None]:
        """The texts that answers and judgements refer to, each once."""
        given = [self.reference, *(each.answer.text for each in self.answers)]
        given += [passage.text for each in self.answers for passage in each.answer.contexts]
        given += [text for judgement in self.judgements for text in judgement.texts]
        return dict.fromkeys(text for text in given if text is not None)
