"""A generated item: a question with its reference answer, evidence and votes, or the reason why there is none."""

from dataclasses import dataclass, field
from enum import StrEnum

from rankbeam.transforms.records.failures import FailureKind
from rankbeam.transforms.records.goldens.sources import Profile


class State(StrEnum):
    """What became of a candidate.

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
class Evidence:
    """A quote that the answer rests on, as [start, end) in code points of the document's text."""

    doc_id: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True)
class Vote:
    """One verdict of a checking model.

    Attributes:
        step: that asked for it.
        criterion: such as "standalone".
        verdict: such as "yes".
        reason: in the model's words.
        critic: the role that it judged in; empty where there is one.
    """

    step: str
    criterion: str
    verdict: str
    reason: str
    critic: str = ""


@dataclass(frozen=True)
class Asked:
    """One call that an item rests on.

    Attributes:
        step: of the call.
        service: the name of the model.
        model_version: that answered, as the service named it.
        key: the content key, which finds the answer in the ledger.
        input, cached, output: tokens, those of failed attempts among them.
    """

    step: str
    service: str
    model_version: str
    key: str
    input: int = 0
    cached: int = 0
    output: int = 0


@dataclass(frozen=True)
class Made:
    """What became of one candidate once models had written and checked it.

    Attributes:
        item_id, type, profile, topic, number, round: as the candidate has them.
        spans: ids of the spans that it was made from.
        state: what became of it.
        reason: the stage that rejected it; None where none did.
        detail: why, for people.
        failure: the kind of the call that failed, where one did.
        question: its text; empty where none was written.
        answer: the reference answer; where there is none, why the documents do not answer.
        nuggets: of the answer.
        evidence: quotes that the answer rests on.
        dropped_quotes: facts whose quote does not stand in the text.
        common_run: the most words that question and spans have in common, one after the other.
        overlap: the share of the question's word stems that stand in the spans.
        agreement: F1 of the claims of the answer and of one that was derived anew from the quotes.
        closed_book: the share of vital nuggets that the writing model knows without any text; None where not asked.
        votes: of the checking model.
        asked: every call.
    """

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
    question: str = ""
    answer: str = ""
    nuggets: tuple[Nugget, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    dropped_quotes: int = 0
    common_run: int = 0
    overlap: float = 0.0
    agreement: float | None = None
    closed_book: float | None = None
    votes: tuple[Vote, ...] = ()
    asked: tuple[Asked, ...] = field(default=())

    @property
    def doc_ids(self) -> tuple[str, ...]:
        """The documents that the answer rests on, each once."""
        return tuple(dict.fromkeys(piece.doc_id for piece in self.evidence))


@dataclass(frozen=True)
class PoolGrade:
    """The grade of a passage for a question, besides those that the question was made from.

    Attributes:
        span: id of the passage.
        doc_id: its document.
        grade: from 0 to 3; None where the call failed.
        reason: in the model's words, or why the call failed.
        failure: the kind of the call that failed, where it may succeed later.
    """

    span: str
    doc_id: str
    grade: int | None
    reason: str
    failure: FailureKind | None = None


@dataclass(frozen=True)
class Pooled:
    """The passages that a question was compared with.

    Attributes:
        item_id: the question.
        grades: one each.
        asked: every call.
    """

    item_id: str
    grades: tuple[PoolGrade, ...]
    asked: tuple[Asked, ...]


class Decision(StrEnum):
    """What a person decides about an item. An edit is accepted with the reviewer's wording."""

    ACCEPT = "accept"
    REJECT = "reject"
    EDIT = "edit"


@dataclass(frozen=True)
class Review:
    """A person's decision about an item.

    Attributes:
        item_id: the item.
        decision: about it.
        reviewer: who decided.
        question, answer: the wording where it was edited; None where it stays.
        evidence: quotes where they were edited; None where they stay.
        note: of the reviewer.
    """

    item_id: str
    decision: Decision
    reviewer: str = ""
    question: str | None = None
    answer: str | None = None
    evidence: tuple[Evidence, ...] | None = None
    note: str = ""


@dataclass(frozen=True)
class Golden:
    """An item of a benchmark.

    Attributes:
        made: the item as models made it.
        split: that it belongs to.
        rank: that bm25 gives the last of its documents, from 1; None where it finds one of them not at all.
        grades: of passages of other documents.
        difficulty: by the rank; empty for unanswerable questions.
        flags: what a reviewer should look at.
    """

    made: Made
    split: str
    rank: int | None
    grades: tuple[PoolGrade, ...] = ()
    difficulty: str = ""
    flags: tuple[str, ...] = ()
