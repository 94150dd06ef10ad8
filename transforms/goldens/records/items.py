"""A generated benchmark: types of questions, profiles and spans; questions with answers, evidence and votes."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from rankbeam.transforms.records.errors import FailureKind

UNANSWERABLE = "unanswerable"
_NOT_WORD = re.compile(r"\W+")
Profile = tuple[tuple[str, str], ...]  # dimensions, each with the assigned value
_DIGITS = 12


@dataclass(frozen=True)
class QuestionType:
    """A type of question."""

    description: str
    spans: int = 1
    share: int = 1


TYPES: Mapping[str, QuestionType] = MappingProxyType(
    {
        "lookup": QuestionType("asks for one fact: a name, a number, a place, a condition", share=4),
        "how_to": QuestionType("asks how something is done; the answer names the steps", share=3),
        "why": QuestionType("asks for a reason or a cause that the text states", share=2),
        "comparison": QuestionType("asks how two things differ or agree; both texts are needed", spans=2),
        "multi_hop": QuestionType("needs a fact of one text to find the fact of the other", spans=2),
        "aggregation": QuestionType("asks for a list or a count of all that the text names"),
        "negation": QuestionType("asks what does not hold, is excluded, or is not possible"),
        "temporal": QuestionType("asks when, how long, in what order, or until when"),
        "keywords": QuestionType("a short query of two to five keywords, as typed into a search box, no sentence"),
        UNANSWERABLE: QuestionType(
            "is plausible for a reader of the text, and nothing in the text answers it", share=2
        ),
    }
)
"""The known types, by name."""


@dataclass(frozen=True)
class ProfileValue:
    """One value of a dimension of the profiles."""

    name: str
    description: str


@dataclass(frozen=True)
class Dimension:
    """A dimension of the profiles, for example the persona of the person who asks."""

    name: str
    description: str
    values: tuple[ProfileValue, ...]
    reason: str = ""  # a model's reason for suggesting it


def repeated_name(dimensions: Sequence[Dimension]) -> str | None:
    """The first dimension with the same column as an earlier one, or the first repeated value; None if all differ.

    >>> values = (ProfileValue("a", ""), ProfileValue("b", ""))
    >>> repeated_name([Dimension("User role", "", values), Dimension("user-role", "", values)])
    'user-role'
    """
    columns = [column_of(dimension.name) for dimension in dimensions]
    twice = [dimensions[place].name for place, column in enumerate(columns) if column in columns[:place]]
    for dimension in dimensions:
        names = [value.name for value in dimension.values]
        twice += [name for place, name in enumerate(names) if name in names[:place]]
    return next(iter(twice), None)


def column_of(name: str) -> str:
    """A dimension's name in columns of tables.

    >>> column_of("User role")
    'user_role'
    """
    return _NOT_WORD.sub("_", name).lower()


DIMENSIONS = (
    Dimension(
        "persona",
        "who asks",
        (
            ProfileValue("newcomer", "knows none of the special terms, and describes the matter in own words"),
            ProfileValue("practitioner", "works with the subject daily, and uses its terms"),
            ProfileValue("manager", "decides, and wants consequences, cost and limits"),
        ),
    ),
    Dimension(
        "difficulty",
        "how hard the text is to find and to use",
        (
            ProfileValue("easy", "in the words of the text"),
            ProfileValue("medium", "partly in other words than the text"),
            ProfileValue("hard", "in other words than the text throughout"),
        ),
    ),
)
"""The default profiles, without a file."""


@dataclass(frozen=True)
class SourceSpan:
    """A part of a document."""

    doc_id: str
    start: int
    end: int
    text: str
    title: str = ""

    @property
    def id(self) -> str:
        """The id of the span; the document's id ends at the last `#`.

        >>> SourceSpan("a#b", 0, 4, "text").id
        'a#b#0-4'
        """
        return f"{self.doc_id}#{self.start}-{self.end}"


@dataclass(frozen=True)
class Candidate:
    """A question that is to be written."""

    item_id: str
    type: str
    profile: Profile
    topic: int
    number: int  # counts questions of one type from the same spans, from 0
    round: int


@dataclass(frozen=True)
class WritingTask:
    """A task of writing: linked spans, and the questions to write about them in one round."""

    spans: tuple[SourceSpan, ...]
    candidates: tuple[Candidate, ...]
    context: tuple[SourceSpan, ...] = ()

    @property
    def name(self) -> str:
        """A hash of the spans: questions about the same spans share their facts."""
        return _digest([part for span in self.spans for part in (span.id, span.text)])


def item_id(spans: Sequence[SourceSpan], kind: str, profile: Profile, number: int) -> str:
    """The id of a question: equal plans have equal ids, on any machine.

    >>> item_id([SourceSpan("d", 0, 4, "text")], "lookup", (("persona", "owner"),), 0)
    'g71f474b808ca'
    """
    parts = [part for span in spans for part in (span.id, span.text)]
    return "g" + _digest([*parts, kind, *(word for pair in profile for word in pair), str(number)])


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


class State(StrEnum):
    """The outcome of a candidate.

    FAILED: a call failed that may succeed later; the next run tries again.
    """

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILED = "failed"


class Reason(StrEnum):
    """The stage that rejected a candidate, in the order of the stages."""

    NO_FACTS = "no_facts"
    NOT_WRITTEN = "not_written"
    LEAK = "leak"
    CHECKS = "checks"
    NOT_DERIVABLE = "not_derivable"
    OTHER_ANSWER = "other_answer"
    DUPLICATE = "duplicate"
    SURPLUS = "surplus"
    ANSWERED_ELSEWHERE = "answered_elsewhere"


@dataclass(frozen=True)
class Nugget:
    """A part of the reference answer; any good answer must have the vital ones."""

    text: str
    vital: bool


@dataclass(frozen=True)
class GoldenEvidence:
    """A quote that the answer rests on, as [start, end) in code points of the document's text."""

    doc_id: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True)
class Vote:
    """One verdict of a checking model."""

    step: str
    criterion: str  # for example "standalone"
    verdict: str  # for example "yes"
    reason: str
    critic: str = ""  # the role of the critic; empty for other steps


@dataclass(frozen=True)
class CallRecord:
    """A call that an item rests on."""

    step: str
    service: str
    model_version: str
    key: str
    input: int = 0
    cached: int = 0
    output: int = 0
    in_batch: bool = False  # True if a batch job made it, at half price


@dataclass(frozen=True)
class WrittenItem:
    """A candidate after models have written and checked it."""

    item_id: str
    type: str
    profile: Profile
    topic: int
    number: int
    round: int
    spans: tuple[str, ...]
    state: State
    reason: Reason | None = None
    detail: str = ""
    failure: FailureKind | None = None
    question: str = ""  # empty if no question was written
    answer: str = ""
    nuggets: tuple[Nugget, ...] = ()
    evidence: tuple[GoldenEvidence, ...] = ()
    dropped_quotes: int = 0
    common_run: int = 0
    overlap: float = 0.0
    agreement: float | None = None
    closed_book: float | None = None
    votes: tuple[Vote, ...] = ()
    asked: tuple[CallRecord, ...] = ()

    @property
    def source_documents(self) -> tuple[str, ...]:
        """The documents of the spans, whether or not they answer the question."""
        return tuple(span.rpartition("#")[0] for span in self.spans)

    @property
    def source_document(self) -> str:
        """The first document from which the question was written."""
        return self.source_documents[0] if self.spans else ""

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """The documents on which the answer rests, each once."""
        return tuple(dict.fromkeys(piece.doc_id for piece in self.evidence))


@dataclass(frozen=True)
class PoolGrade:
    """The grade of a passage for a question that was not made from it."""

    span: str
    doc_id: str
    grade: int | None
    reason: str
    failure: FailureKind | None = None


@dataclass(frozen=True)
class PooledPassages:
    """The passages that a question was compared with."""

    item_id: str
    grades: tuple[PoolGrade, ...]
    asked: tuple[CallRecord, ...]


class ReviewDecision(StrEnum):
    """A person's decision about an item. An edit accepts the item with the reviewer's wording."""

    ACCEPT = "accept"
    REJECT = "reject"
    EDIT = "edit"


@dataclass(frozen=True)
class Review:
    """A person's review of an item."""

    item_id: str
    decision: ReviewDecision
    reviewer: str = ""
    question: str | None = None
    answer: str | None = None
    evidence: tuple[GoldenEvidence, ...] | None = None  # edited quotes; None if they are unchanged
    note: str = ""


@dataclass(frozen=True)
class Golden:
    """An item of a benchmark."""

    made: WrittenItem
    split: str
    rank: int | None  # worst bm25 rank of its documents; None if bm25 misses one
    grades: tuple[PoolGrade, ...] = ()
    difficulty: str = ""  # empty for unanswerable questions
    flags: tuple[str, ...] = ()
