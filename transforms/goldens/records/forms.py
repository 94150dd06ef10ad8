"""Replies of the steps of writing and checking: JSON schemas, and strict parsers.

    step            values of its prompt                         reads as
    profiles        texts {number: text}                         Dimensions
    facts           texts {number: text}                         Facts: those whose quote is in its text
    enlarge         text                                         text to search for
    distill         facts, sentences {number: text}              numbers of sentences
    question        facts {number: text}, type, profile          Draft
    unanswerable    facts, profile                               Draft without nuggets and facts
    checks          question, answer, quotes                     Vote, one a criterion
    critic          question, answer, quotes, role               Vote
    consensus       as critic, and reviews                       Vote
    derive          question, quotes                             Derived
    closed_book     question                                     text

A reply that breaks a rule is `MALFORMED`, with a message that a repair quotes. A quote that is not in its text is no
such break: the fact is dropped and counted, so that a model that makes facts up is seen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from rankbeam.transforms.goldens.records.items import Dimension, Nugget, ProfileValue, Vote, repeated_name
from rankbeam.transforms.records.errors import shortened
from rankbeam.transforms.records.forms import TEXT, Form, Text, list_of, malformed, object_of, parsed, place_of

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
"""The criteria by which the checks decide about a question and its answer."""
CRITICS: Mapping[str, str] = MappingProxyType(
    {
        "analyst": "an analyst, who looks for errors of fact and for what does not follow from the quotes",
        "synthesizer": "a synthesizer, who asks whether question and answer fit the whole of the quotes",
        "practical": "a practical reader, who asks whether a person would want to know this, and could use the answer",
    }
)
"""The roles that criticise a question, where critics are wanted."""

_MOST_FACTS = 20
_LONGEST_REASON = 300


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
    """An atomic statement, with the words of the text that say it."""

    text: str
    source: int
    start: int
    end: int
    quote: str


@dataclass(frozen=True)
class Facts:
    """The facts of some texts, and the number of those dropped because their quote is not in the text."""

    facts: tuple[Fact, ...]
    dropped: int


@dataclass(frozen=True)
class DraftQuestion:
    """A question as it was written, its answer, and the numbers of the facts that it rests on."""

    question: str
    answer: str
    nuggets: tuple[Nugget, ...] = ()
    facts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Derived:
    """The answer that follows from quotes alone, and its claims; not answerable where none does."""

    answerable: bool
    answer: str
    claims: tuple[str, ...]


class _Value(Form):
    name: Text
    description: Text


class _Dimension(Form):
    name: Text
    description: Text
    reason: str
    values: Annotated[list[_Value], Field(min_length=2, max_length=12)]


class _Profiles(Form):
    dimensions: Annotated[list[_Dimension], Field(min_length=1, max_length=8)]


class _Fact(Form):
    text: Text
    source: int
    quote: Text


class _Facts(Form):
    facts: Annotated[list[_Fact], Field(max_length=_MOST_FACTS)]


class _Distilled(Form):
    sentences: list[int]


class _Nugget(Form):
    text: Text
    vital: bool


class _DraftForm(Form):
    question: Text
    answer: Text
    facts: Annotated[list[int], Field(min_length=1)]
    nuggets: Annotated[list[_Nugget], Field(min_length=1)]


class _Unanswerable(Form):
    question: Text
    answer: Text


class _Check(Form):
    reason: str
    verdict: YesNo


class _Checks(Form):
    standalone: _Check
    answerable_from_quotes: _Check
    complete: _Check
    only_from_quotes: _Check
    natural: _Check
    harmless: _Check


class _Critic(Form):
    reason: str
    verdict: CriticDecision


class _Derived(Form):
    answerable: bool
    answer: str
    claims: list[Text]


class _Enlarged(Form):
    description: Text
    example: Text


class _ClosedBook(Form):
    answer: Text


def read(step: str, values: Mapping[str, Any], answer: str) -> Any:
    """The parsed answer to a step.

    >>> read("closed_book", {}, '{"answer": "I do not know."}')
    'I do not know.'
    """
    return _READERS[step](values, answer)


def schema(step: str, values: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG001  the values decide no form here
    """The JSON schema of the answer to a step.

    >>> list(schema("derive", {})["properties"])
    ['answerable', 'answer', 'claims']
    """
    return _SCHEMAS[step]


def _profiles(_: Mapping[str, Any], answer: str) -> tuple[Dimension, ...]:
    form = parsed(_Profiles, answer)
    dimensions = tuple(
        Dimension(
            one.name,
            one.description,
            tuple(ProfileValue(value.name, value.description) for value in one.values),
            shortened(one.reason, _LONGEST_REASON),
        )
        for one in form.dimensions
    )
    if (name := repeated_name(dimensions)) is not None:
        raise malformed(f"the name {name!r} occurs twice")
    return dimensions


def _facts(values: Mapping[str, Any], answer: str) -> Facts:
    facts_read = parsed(_Facts, answer).facts
    facts = []
    for one in facts_read:
        text = values["texts"].get(str(one.source))
        place = None if text is None else place_of(one.quote, text)
        if text is not None and place is not None:
            facts.append(Fact(one.text, one.source, *place, text[place[0] : place[1]]))
    return Facts(tuple(facts), len(facts_read) - len(facts))


def _enlarged(_: Mapping[str, Any], answer: str) -> str:
    form = parsed(_Enlarged, answer)
    return f"{form.example} {form.description}"


def _distilled(values: Mapping[str, Any], answer: str) -> tuple[int, ...]:
    form = parsed(_Distilled, answer)
    if unknown := sorted({number for number in form.sentences if str(number) not in values["sentences"]}):
        raise malformed(f"sentences: there is no sentence {unknown[0]}")
    return tuple(sorted({*form.sentences}))


def _draft_question(values: Mapping[str, Any], answer: str) -> DraftQuestion:
    form = parsed(_DraftForm, answer)
    unknown = sorted({number for number in form.facts if str(number) not in values["facts"]})
    if unknown:
        raise malformed(f"facts: there is no fact {unknown[0]}; they are 0 to {len(values['facts']) - 1}")
    if not any(nugget.vital for nugget in form.nuggets):
        raise malformed("nuggets: at least one is vital")
    nuggets = tuple(Nugget(nugget.text, nugget.vital) for nugget in form.nuggets)
    return DraftQuestion(form.question, form.answer, nuggets, tuple(dict.fromkeys(form.facts)))


def _unanswerable(_: Mapping[str, Any], answer: str) -> DraftQuestion:
    form = parsed(_Unanswerable, answer)
    return DraftQuestion(form.question, form.answer)


def _checks(_: Mapping[str, Any], answer: str) -> tuple[Vote, ...]:
    form = parsed(_Checks, answer)
    votes = ((name, getattr(form, name)) for name in CRITERIA)
    return tuple(Vote("checks", name, one.verdict, shortened(one.reason, _LONGEST_REASON)) for name, one in votes)


def _critic(step: str) -> Callable[[Mapping[str, Any], str], Vote]:
    def read_vote(values: Mapping[str, Any], answer: str) -> Vote:
        form = parsed(_Critic, answer)
        reason = shortened(form.reason, _LONGEST_REASON)
        return Vote(step, "approval", form.verdict, reason, str(values["critic"]))

    return read_vote


def _derived(_: Mapping[str, Any], answer: str) -> Derived:
    form = parsed(_Derived, answer)
    if form.answerable and not form.claims:
        raise malformed("claims: an answer has at least one")
    return Derived(form.answerable, form.answer, tuple(form.claims))


def _closed_book(_: Mapping[str, Any], answer: str) -> str:
    return parsed(_ClosedBook, answer).answer


def _verdict(values: type[StrEnum]) -> dict[str, Any]:
    return object_of(reason=TEXT, verdict={"type": "string", "enum": [value.value for value in values]})


_READERS: Mapping[str, Callable[[Mapping[str, Any], str], Any]] = {
    "profiles": _profiles,
    "facts": _facts,
    "enlarge": _enlarged,
    "distill": _distilled,
    "question": _draft_question,
    "unanswerable": _unanswerable,
    "checks": _checks,
    "critic": _critic("critic"),
    "consensus": _critic("consensus"),
    "derive": _derived,
    "closed_book": _closed_book,
}
_NUMBER: dict[str, Any] = {"type": "integer", "minimum": 0}
_TRUTH: dict[str, Any] = {"type": "boolean"}
_SCHEMAS: Mapping[str, dict[str, Any]] = {
    "profiles": object_of(
        dimensions=list_of(
            object_of(name=TEXT, description=TEXT, reason=TEXT, values=list_of(object_of(name=TEXT, description=TEXT)))
        )
    ),
    "facts": object_of(facts=list_of(object_of(text=TEXT, source=_NUMBER, quote=TEXT))),
    "enlarge": object_of(description=TEXT, example=TEXT),
    "distill": object_of(sentences=list_of(_NUMBER)),
    "question": object_of(
        question=TEXT, answer=TEXT, facts=list_of(_NUMBER), nuggets=list_of(object_of(text=TEXT, vital=_TRUTH))
    ),
    "unanswerable": object_of(question=TEXT, answer=TEXT),
    "checks": object_of(**{name: _verdict(YesNo) for name in CRITERIA}),
    "critic": _verdict(CriticDecision),
    "consensus": _verdict(CriticDecision),
    "derive": object_of(answerable=_TRUTH, answer=TEXT, claims=list_of(TEXT)),
    "closed_book": object_of(answer=TEXT),
}
