"""What a judge's step answers: its JSON schema, and the strict reading of what came back.

Nothing is made up and nothing is dropped: ids must be complete, values must be those of the schema, no key may occur
twice. What breaks a rule is `MALFORMED`, with a message that says what was wrong: a repair quotes it. A claim whose
quote is not in its text is kept without a place.

    step            values of its prompt                    reads as
    claims          query, text                             Claim, one each
    support         query, claims {id: text}, evidence      Judged[Verdict], one a claim, in the order of ids
    grade           query, context                          Grade
    answer_kind     query, answer                           Kind
    nugget_assign   query, nuggets {id: text}, answer       Judged[Assigned], one a nugget
    statements      query, answer                           texts
    questions       answer                                  Question, three
    sentences       query, sentences [text]                 whether each is needed
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from rankbeam.transforms.kernels.judged import HIGHEST_GRADE, AnswerKind, Assigned
from rankbeam.transforms.kernels.quoting import place_of
from rankbeam.transforms.records.forms import TEXT, Form, Text, list_of, malformed, object_of, parsed, whole
from rankbeam.transforms.records.suggestions import shortened

QUESTIONS = 3
"""Made from one answer."""
LONGEST_REASON = 300
"""Characters of a reason that are kept."""


class Verdict(StrEnum):
    """What a text says of a claim."""

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    NOT_STATED = "not_stated"


V = TypeVar("V", bound=StrEnum)


@dataclass(frozen=True)
class Claim:
    """One claim of a text, and where the text makes it: [start, end) in code points; None where the quote is absent."""

    text: str
    start: int | None
    end: int | None


@dataclass(frozen=True)
class Judged(Generic[V]):
    """A verdict with its reason."""

    verdict: V
    reason: str


@dataclass(frozen=True)
class Grade:
    """Grades of a context for a query, from 0 to 3: does it fit the intent, can it be trusted, and both together."""

    intent: int
    trust: int
    grade: int
    reason: str


@dataclass(frozen=True)
class Kind:
    """What an answer does with its question, and how relevant it is, from 0 to 3."""

    kind: AnswerKind
    relevance: int
    reason: str


@dataclass(frozen=True)
class Question:
    """A question that an answer answers; noncommittal where the answer evades it."""

    text: str
    noncommittal: bool


_Level = Annotated[int, Field(ge=0, le=HIGHEST_GRADE)]


class _Claim(Form):
    id: int
    text: Text
    quote: Any = None  # no repair is paid for a quote: it decides no value


class _Claims(Form):
    claims: list[_Claim]


class _Verdict(Form):
    id: int
    reason: str
    verdict: Verdict


class _Verdicts(Form):
    verdicts: list[_Verdict]


class _Assignment(Form):
    id: int
    reason: str
    verdict: Assigned


class _Assignments(Form):
    verdicts: list[_Assignment]


class _Grade(Form):
    reason: str
    intent: _Level
    trust: _Level
    grade: _Level


class _Kind(Form):
    reason: str
    kind: AnswerKind
    relevance: _Level


class _Statements(Form):
    statements: list[Text]


class _Question(Form):
    question: Text
    noncommittal: bool


class _Questions(Form):
    questions: Annotated[list[_Question], Field(min_length=QUESTIONS, max_length=QUESTIONS)]


class _Sentences(Form):
    sentences: list[int]


def read(step: str, values: Mapping[str, Any], answer: str) -> Any:
    """What an answer to a step says.

    >>> [one.verdict.value for one in read(
    ...     "support", {"claims": {"0": "x"}}, '{"verdicts": [{"id": 0, "reason": "r", "verdict": "not_stated"}]}')]
    ['not_stated']
    """
    return _STEPS[step].read(values, answer)


def schema(step: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of the answer to a step about these values; every property is required, in its order.

    >>> schema("support", {"claims": {"0": "x", "1": "y"}})["properties"]["verdicts"]["maxItems"]
    2
    """
    return _STEPS[step].schema(values)


def steps() -> tuple[str, ...]:
    """The names of all steps."""
    return tuple(_STEPS)


@dataclass(frozen=True)
class _Step:
    read: Callable[[Mapping[str, Any], str], Any]
    schema: Callable[[Mapping[str, Any]], dict[str, Any]]


def _read_claims(values: Mapping[str, Any], answer: str) -> tuple[Claim, ...]:
    found = sorted(parsed(_Claims, answer).claims, key=lambda claim: claim.id)
    _check_ids([claim.id for claim in found], len(found), "claims")
    return tuple(_claim(claim, values["text"]) for claim in found)


def _claim(claim: _Claim, text: str) -> Claim:
    place = place_of(claim.quote, text) if isinstance(claim.quote, str) else None
    return Claim(claim.text, *(place or (None, None)))


def _read_support(values: Mapping[str, Any], answer: str) -> tuple[Judged[Verdict], ...]:
    found = sorted(parsed(_Verdicts, answer).verdicts, key=lambda one: one.id)
    _check_ids([one.id for one in found], len(values["claims"]), "verdicts")
    return tuple(Judged(one.verdict, shortened(one.reason, LONGEST_REASON)) for one in found)


def _read_assignments(values: Mapping[str, Any], answer: str) -> tuple[Judged[Assigned], ...]:
    found = sorted(parsed(_Assignments, answer).verdicts, key=lambda one: one.id)
    _check_ids([one.id for one in found], len(values["nuggets"]), "verdicts")
    return tuple(Judged(one.verdict, shortened(one.reason, LONGEST_REASON)) for one in found)


def _read_grade(_: Mapping[str, Any], answer: str) -> Grade:
    found = parsed(_Grade, answer)
    return Grade(found.intent, found.trust, found.grade, shortened(found.reason, LONGEST_REASON))


def _read_kind(_: Mapping[str, Any], answer: str) -> Kind:
    found = parsed(_Kind, answer)
    return Kind(found.kind, found.relevance, shortened(found.reason, LONGEST_REASON))


def _read_statements(_: Mapping[str, Any], answer: str) -> tuple[str, ...]:
    return tuple(parsed(_Statements, answer).statements)


def _read_questions(_: Mapping[str, Any], answer: str) -> tuple[Question, ...]:
    return tuple(Question(one.question, one.noncommittal) for one in parsed(_Questions, answer).questions)


def _read_sentences(values: Mapping[str, Any], answer: str) -> tuple[bool, ...]:
    ids, count = parsed(_Sentences, answer).sentences, len(values["sentences"])
    if len(set(ids)) < len(ids) or not all(1 <= one <= count for one in ids):
        raise malformed(f"sentences: each id at most once, and from 1 to {count}; found {sorted(ids)[:10]}")
    return tuple(number in ids for number in range(1, count + 1))


def _check_ids(ids: list[int], count: int, name: str) -> None:
    """Refuse ids that are not exactly 0 to count - 1; sorted ones are given."""
    if ids == list(range(count)):
        return
    missing = sorted(set(range(count)) - set(ids))
    further = sorted({one for one in ids if not 0 <= one < count or ids.count(one) > 1})
    said = [f"{what} {sorted(some)[:10]}" for what, some in (("missing", missing), ("further", further)) if some]
    raise malformed(f"{name}: the ids must be 0 to {count - 1}, each once; {', '.join(said)}")


def _list(name: str, items: dict[str, Any], count: int | None = None) -> dict[str, Any]:
    return object_of(**{name: list_of(items, count)})


def _one_of(values: type[StrEnum]) -> dict[str, Any]:
    return {"type": "string", "enum": [value.value for value in values]}


def _verdicts(values: type[StrEnum], count: int) -> dict[str, Any]:
    return _list("verdicts", object_of(id=whole(0, count - 1), reason=TEXT, verdict=_one_of(values)), count)


_LEVEL = whole(0, HIGHEST_GRADE)

_STEPS: Mapping[str, _Step] = {
    "claims": _Step(
        _read_claims, lambda _: _list("claims", object_of(id={"type": "integer", "minimum": 0}, text=TEXT, quote=TEXT))
    ),
    "support": _Step(_read_support, lambda values: _verdicts(Verdict, len(values["claims"]))),
    "grade": _Step(_read_grade, lambda _: object_of(reason=TEXT, intent=_LEVEL, trust=_LEVEL, grade=_LEVEL)),
    "answer_kind": _Step(_read_kind, lambda _: object_of(reason=TEXT, kind=_one_of(AnswerKind), relevance=_LEVEL)),
    "nugget_assign": _Step(_read_assignments, lambda values: _verdicts(Assigned, len(values["nuggets"]))),
    "statements": _Step(_read_statements, lambda _: _list("statements", TEXT)),
    "questions": _Step(
        _read_questions,
        lambda _: _list("questions", object_of(question=TEXT, noncommittal={"type": "boolean"}), QUESTIONS),
    ),
    "sentences": _Step(_read_sentences, lambda values: _list("sentences", whole(1, len(values["sentences"])))),
}
