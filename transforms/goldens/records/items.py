"""A generated item: a question with its reference answer, evidence and votes, or the reason why there is none."""

from dataclasses import dataclass, field
from enum import StrEnum

from rankbeam.transforms.goldens.records.types import Profile
from rankbeam.transforms.records.failures import FailureKind


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
    """A part of the reference answer: vital ones must be in any good answer."""

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
    criterion: str  # such as "standalone"
    verdict: str  # such as "yes"
    reason: str
    critic: str = ""  # the role that it judged in; empty where there is one


@dataclass(frozen=True)
class Asked:
    """One call that an item rests on."""

    step: str
    service: str
    model_version: str
    key: str
    input: int = 0
    cached: int = 0
    output: int = 0


@dataclass(frozen=True)
class Made:
    """One candidate after models have written and checked it."""

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
    question: str = ""  # empty where none was written
    answer: str = ""
    nuggets: tuple[Nugget, ...] = ()
    evidence: tuple[GoldenEvidence, ...] = ()
    dropped_quotes: int = 0
    common_run: int = 0
    overlap: float = 0.0
    agreement: float | None = None
    closed_book: float | None = None
    votes: tuple[Vote, ...] = ()
    asked: tuple[Asked, ...] = field(default=())

    @property
    def source_document(self) -> str:
        """The first document that it was written from, whether that answers it or not."""
        return self.spans[0].rpartition("#")[0] if self.spans else ""

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """The documents that the answer rests on, each once."""
        return tuple(dict.fromkeys(piece.doc_id for piece in self.evidence))


@dataclass(frozen=True)
class PoolGrade:
    """The grade of a passage for a question, besides those that the question was made from."""

    span: str
    doc_id: str
    grade: int | None
    reason: str
    failure: FailureKind | None = None


@dataclass(frozen=True)
class Pooled:
    """The passages that a question was compared with."""

    item_id: str
    grades: tuple[PoolGrade, ...]
    asked: tuple[Asked, ...]


class ReviewDecision(StrEnum):
    """A person's decision about an item. An edit is accepted with the reviewer's wording."""

    ACCEPT = "accept"
    REJECT = "reject"
    EDIT = "edit"


@dataclass(frozen=True)
class Review:
    """A person's decision about an item."""

    item_id: str
    decision: ReviewDecision
    reviewer: str = ""
    question: str | None = None
    answer: str | None = None
    evidence: tuple[GoldenEvidence, ...] | None = None  # quotes where they were edited; None if they stay
    note: str = ""


@dataclass(frozen=True)
class Golden:
    """An item of a benchmark."""

    made: Made
    split: str
    rank: int | None  # None if it finds one of them not at all
    grades: tuple[PoolGrade, ...] = ()
    difficulty: str = ""  # empty for unanswerable questions
    flags: tuple[str, ...] = ()
