"""Replies of the writing and checking steps: JSON schemas, and strict parsers.

    step            values of its prompt                         reads as
    profiles        texts {number: text}                         Dimension, several
    facts           texts {number: text}                         Facts: those whose quote is in its text
    enlarge         text                                         text to search for
    distill         facts, sentences {number: text}              numbers of sentences
    question        facts {number: text}, type, profile          DraftQuestion
    unanswerable    facts, profile                               DraftQuestion without nuggets and facts
    checks          question, answer, quotes                     Vote, one for each criterion
    critic          question, answer, quotes, critic, role       Vote
    consensus       as critic, and reviews                       Vote
    derive          question, quotes                             DerivedAnswer
    closed_book     question                                     text

A reply that breaks a rule is `MALFORMED`, with a message that a repair quotes. A quote that is not in its text does not
break a rule: the fact is dropped and counted, so that users see that a model makes facts up.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from pydantic import Field, WithJsonSchema

from rankbeam.transforms.goldens.records.items import Dimension, Nugget, ProfileValue, Vote, repeated_name
from rankbeam.transforms.kernels.quoting import exact_place
from rankbeam.transforms.records.errors import shortened
from rankbeam.transforms.records.forms import Form, Text, malformed, parse_form, schema_of

CRITERIA: Mapping[str, str] = MappingProxyType(
    {
        "standalone": "understandable without the text, such as without \"the article\" or \"this section\"",
        "answerable_from_quotes": "the quotes alone hold the answer",
        "complete": "the answer says all that the question asks for",
        "only_from_quotes": "everything in the answer stands in the quotes; nothing is added",
        "natural": "a person could ask it like this",
        "harmless": "question and answer are harmless",
    }
)  # fmt: skip
"""The criteria by which a question and its answer are checked."""
CRITICS: Mapping[str, str] = MappingProxyType(
    {
        "analyst": "an analyst, who looks for errors of fact and for what does not follow from the quotes",
        "synthesizer": "a synthesizer, who asks whether question and answer fit the whole of the quotes",
        "practical": "a practical reader, who asks whether a person would want to know this, and could use the answer",
    }
)
"""The roles that criticise a question, if critics are enabled."""

_MOST_FACTS = 20
_LONGEST_REASON = 300
_BOUNDS = frozenset({"minLength", "pattern", "minItems", "maxItems"})
"""Rules that are not sent with a schema; a reply that breaks one is malformed."""
_Number = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 0})]


class YesNo(StrEnum):
    """A verdict on one criterion."""

    YES = "yes"
    NO = "no"


class CriticDecision(StrEnum):
    """The verdict of a critic."""

    APPROVE = "approve"
    REJECT = "reject"


@dataclass(frozen=True)
class Fact:
    """An atomic statement, with the words of the text that state it."""

    text: str
    source: int
    start: int
    end: int
    quote: str


@dataclass(frozen=True)
class Facts:
    """The facts of some texts, and the number of facts dropped because their quote is not in the text."""

    facts: tuple[Fact, ...]
    dropped: int


@dataclass(frozen=True)
class DraftQuestion:
    """A question as written, its answer, and the numbers of the facts that it rests on."""

    question: str
    answer: str
    nuggets: tuple[Nugget, ...] = ()
    facts: tuple[int, ...] = ()


@dataclass(frozen=True)
class DerivedAnswer:
    """The answer that follows from quotes alone, and its claims; not answerable if no answer follows."""

    answerable: bool
    answer: str
    claims: tuple[str, ...]


class _Reply(Form):
    """The reply of a step."""

    @abstractmethod
    def value(self, values: Mapping[str, Any], /) -> Any:
        """The parsed value of the reply; `values` are the values of its prompt."""


class _Value(Form):
    name: Text
    description: Text


class _Dimension(Form):
    name: Text
    description: Text
    reason: str
    values: Annotated[list[_Value], Field(min_length=2, max_length=12)]


class _Profiles(_Reply):
    dimensions: Annotated[list[_Dimension], Field(min_length=1, max_length=8)]

    def value(self, _: Mapping[str, Any], /) -> tuple[Dimension, ...]:
        dimensions = tuple(
            Dimension(
                dimension.name,
                dimension.description,
                tuple(ProfileValue(value.name, value.description) for value in dimension.values),
                shortened(dimension.reason, _LONGEST_REASON),
            )
            for dimension in self.dimensions
        )
        if (name := repeated_name(dimensions)) is not None:
            raise malformed(f"the name {name!r} occurs twice")
        return dimensions


class _Fact(Form):
    text: Text
    source: _Number
    quote: Text


class _Facts(_Reply):
    facts: Annotated[list[_Fact], Field(max_length=_MOST_FACTS)]

    def value(self, values: Mapping[str, Any], /) -> Facts:
        facts = []
        for fact in self.facts:
            text = values["texts"].get(str(fact.source))
            place = None if text is None else exact_place(fact.quote, text)
            if text is not None and place is not None:
                facts.append(Fact(fact.text, fact.source, *place, text[place[0] : place[1]]))
        return Facts(tuple(facts), len(self.facts) - len(facts))


class _Enlarged(_Reply):
    description: Text
    example: Text

    def value(self, _: Mapping[str, Any], /) -> str:
        return f"{self.example} {self.description}"


class _Distilled(_Reply):
    sentences: list[_Number]

    def value(self, values: Mapping[str, Any], /) -> tuple[int, ...]:
        if unknown := sorted({number for number in self.sentences if str(number) not in values["sentences"]}):
            raise malformed(f"sentences: there is no sentence {unknown[0]}")
        return tuple(sorted({*self.sentences}))


class _Nugget(Form):
    text: Text
    vital: bool


class _DraftForm(_Reply):
    question: Text
    answer: Text
    facts: Annotated[list[_Number], Field(min_length=1)]
    nuggets: Annotated[list[_Nugget], Field(min_length=1)]

    def value(self, values: Mapping[str, Any], /) -> DraftQuestion:
        unknown = sorted({number for number in self.facts if str(number) not in values["facts"]})
        if unknown:
            raise malformed(f"facts: there is no fact {unknown[0]}; they are 0 to {len(values['facts']) - 1}")
        if not any(nugget.vital for nugget in self.nuggets):
            raise malformed("nuggets: at least one is vital")
        nuggets = tuple(Nugget(nugget.text, nugget.vital) for nugget in self.nuggets)
        return DraftQuestion(self.question, self.answer, nuggets, tuple(dict.fromkeys(self.facts)))


class _Unanswerable(_Reply):
    question: Text
    answer: Text

    def value(self, _: Mapping[str, Any], /) -> DraftQuestion:
        return DraftQuestion(self.question, self.answer)


class _Check(Form):
    reason: str
    verdict: YesNo


class _Checks(_Reply):
    standalone: _Check
    answerable_from_quotes: _Check
    complete: _Check
    only_from_quotes: _Check
    natural: _Check
    harmless: _Check

    def value(self, _: Mapping[str, Any], /) -> tuple[Vote, ...]:
        votes = ((name, getattr(self, name)) for name in CRITERIA)
        return tuple(Vote("checks", name, one.verdict, shortened(one.reason, _LONGEST_REASON)) for name, one in votes)


class _Critic(_Reply):
    step: ClassVar[str] = "critic"
    reason: str
    verdict: CriticDecision

    def value(self, values: Mapping[str, Any], /) -> Vote:
        return Vote(self.step, "approval", self.verdict, shortened(self.reason, _LONGEST_REASON), str(values["critic"]))


class _Consensus(_Critic):
    step: ClassVar[str] = "consensus"


class _Derived(_Reply):
    answerable: bool
    answer: str
    claims: list[Text]

    def value(self, _: Mapping[str, Any], /) -> DerivedAnswer:
        if self.answerable and not self.claims:
            raise malformed("claims: an answer has at least one")
        return DerivedAnswer(self.answerable, self.answer, tuple(self.claims))


class _ClosedBook(_Reply):
    answer: Text

    def value(self, _: Mapping[str, Any], /) -> str:
        return self.answer


_REPLIES: Mapping[str, type[_Reply]] = {
    "profiles": _Profiles,
    "facts": _Facts,
    "enlarge": _Enlarged,
    "distill": _Distilled,
    "question": _DraftForm,
    "unanswerable": _Unanswerable,
    "checks": _Checks,
    "critic": _Critic,
    "consensus": _Consensus,
    "derive": _Derived,
    "closed_book": _ClosedBook,
}


def parse_reply(step: str, values: Mapping[str, Any], answer: str) -> Any:
    """Parse the reply to a step.

    >>> parse_reply("closed_book", {}, '{"answer": "I do not know."}')
    'I do not know.'
    """
    return parse_form(_REPLIES[step], answer).value(values)


def schema(step: str, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG001  the values decide no form here
    """The JSON schema of the reply to a step.

    >>> list(schema("derive", {})["properties"])
    ['answerable', 'answer', 'claims']
    """
    return schema_of(_REPLIES[step], _BOUNDS)
