"""The work on one source: facts, then for each candidate a question with its answer, checked in several ways.

    facts ──► question ──► leak? ──► checks, answer derived anew ──► compared by claims ──► closed book
                                     (critics, a second round)

All candidates of a source go through the steps together, so that they share the facts, and the sentences of other
documents that belong to the facts (`distilling`).
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rankbeam.transforms.clients.models.local import share, stems
from rankbeam.transforms.goldens.asking import FINAL, AskingWork, ParsedReply
from rankbeam.transforms.goldens.distilling import distill_context
from rankbeam.transforms.goldens.records.forms import (
    CRITICS,
    CriticDecision,
    DerivedAnswer,
    DraftQuestion,
    Fact,
    Facts,
    YesNo,
)
from rankbeam.transforms.goldens.records.items import (
    DIMENSIONS,
    TYPES,
    UNANSWERABLE,
    CallRecord,
    Candidate,
    Dimension,
    GoldenEvidence,
    Reason,
    SourceSpan,
    State,
    Vote,
    WritingTask,
    WrittenItem,
)
from rankbeam.transforms.judge.steps.support import SupportVerdict
from rankbeam.transforms.kernels.judged import NuggetAssignment, claim_f1, nugget_score
from rankbeam.transforms.kernels.wording import MOST_COMMON_WORDS, longest_common_run, words
from rankbeam.transforms.records.calls.steps import Call, Steps, together
from rankbeam.transforms.records.errors import CallError, FailureKind

STAGE = "write"
FURTHER = "(further document)"  # the mark of facts of other documents than those that a question is about
LEAST_AGREEMENT = 0.8
"""Minimum F1 between the claims of the answer and those of an answer derived from the quotes alone."""

_OF_UNANSWERABLE: Mapping[str, YesNo] = {
    "standalone": YesNo.YES,
    "answerable_from_quotes": YesNo.NO,
    "natural": YesNo.YES,
    "harmless": YesNo.YES,
}

Asks = Generator[Sequence[Call], Sequence[Any], Any]


@dataclass(frozen=True)
class Reviews:
    """Options for the checks of a candidate."""

    critics: bool = False
    closed_book: bool = True
    language: str = "english"


class _CandidateRejected(Exception):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True)
class WriteItems(AskingWork):
    """Write and check questions about spans; a `Work` whose items are `WritingTask`s."""

    reviews: Reviews = Reviews()
    dimensions: tuple[Dimension, ...] = DIMENSIONS
    overall: bool = False
    stage: ClassVar[str] = STAGE

    def steps(self, item: WritingTask) -> Steps[tuple[WrittenItem, ...]]:
        texts = {str(number): span.text for number, span in enumerate(item.spans)}
        (facts,) = yield [self.asking.call("facts", {"texts": texts})]
        calls: list[CallRecord] = []
        if item.context and isinstance(facts, ParsedReply) and facts.value.facts:
            facts, calls = yield from distill_context(self.asking, item, facts, overall=self.overall)
        writings = [_CandidateWork(self, item, candidate, list(calls)) for candidate in item.candidates]
        results = yield from together([writing.steps(facts) for writing in writings])
        return tuple(results)


@dataclass(eq=False)
class _CandidateWork:
    """One candidate on its way through the steps."""

    work: WriteItems
    source: WritingTask
    candidate: Candidate
    calls: list[CallRecord] = field(default_factory=list)
    votes: list[Vote] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)
    reason: Reason = Reason.NO_FACTS

    def steps(self, facts: Any) -> Steps[WrittenItem]:
        """Run all steps; `facts` is the outcome of the step that all candidates of the source share."""
        try:
            yield from self._steps(facts)
        except _CandidateRejected as rejected:
            return self._item(State.REJECTED, rejected.reason, rejected.detail)
        except CallError as error:
            detail = f"{error.kind}: {error.message}"
            if error.kind in FINAL:
                return self._item(State.REJECTED, self.reason, detail)
            return self._item(State.FAILED, None, detail, error.kind)
        return self._item(State.ACCEPTED)

    def _steps(self, outcome: Any) -> Asks:
        facts: Facts = self._value(outcome)
        self.known["dropped_quotes"] = facts.dropped
        if not facts.facts:
            invented = f"facts without a quote from the text: {facts.dropped}"
            raise _CandidateRejected(Reason.NO_FACTS, invented if facts.dropped else "no facts")
        self.reason = Reason.NOT_WRITTEN
        draft: DraftQuestion = yield from self._write(facts)
        self._refuse_leak(draft)
        quotes = self._quotes(facts, draft)
        self.reason = Reason.CHECKS
        derived = yield from self._check(draft, quotes)
        if self._is_unanswerable:
            if derived.answerable:
                raise _CandidateRejected(Reason.NOT_DERIVABLE, f"the text answers it: {derived.answer}")
            return
        if not derived.answerable:
            raise _CandidateRejected(Reason.NOT_DERIVABLE, "the quotes alone do not answer it")
        self.reason = Reason.OTHER_ANSWER
        yield from self._compare(draft, derived)
        if self.work.reviews.closed_book:
            yield from self._closed_book(draft)

    @property
    def _is_unanswerable(self) -> bool:
        return self.candidate.type == UNANSWERABLE

    def _write(self, facts: Facts) -> Asks:
        usable = facts.facts if not self._is_unanswerable else [fact for fact in facts.facts if self._is_own(fact)]
        values: dict[str, Any] = {
            "profile": _profile_text(self.candidate, self.work.dimensions),
            "facts": {str(number): self._named(fact) for number, fact in enumerate(usable)},
        }
        if self._is_unanswerable:
            (draft,) = yield from self._ask(("unanswerable", {**values, "texts": self._texts()}))
        else:
            described = f"{self.candidate.type}: {TYPES[self.candidate.type].description}"
            (draft,) = yield from self._ask(("question", {**values, "type": described}))
        self.known |= {"question": draft.question, "answer": draft.answer, "nuggets": draft.nuggets}
        used = [facts.facts[number] for number in draft.facts]
        passages = (*self.source.spans, *self.source.context)
        self.known["evidence"] = tuple(_evidence(passages[fact.source], fact) for fact in used)
        own_sources = {fact.source for fact in used if self._is_own(fact)}
        if not self._is_unanswerable and len(own_sources) < len(self.source.spans):
            which = "one of the two texts only" if len(self.source.spans) > 1 else "other documents only"
            raise _CandidateRejected(Reason.NOT_WRITTEN, f"rests on {which}")
        return draft

    def _is_own(self, fact: Fact) -> bool:
        return fact.source < len(self.source.spans)

    def _named(self, fact: Fact) -> str:
        """A fact as the writer reads it: with its text's number if there are several texts."""
        if not self._is_own(fact):
            return f"{FURTHER} {fact.text}"
        return f"(text {fact.source}) {fact.text}" if len(self.source.spans) > 1 else fact.text

    def _refuse_leak(self, draft: DraftQuestion) -> None:
        language = self.work.reviews.language
        question_words = words(draft.question)
        passages = (*self.source.spans, *self.source.context)
        self.known["common_run"] = max(longest_common_run(question_words, words(span.text)) for span in passages)
        whole = frozenset[str]().union(*(stems(span.text, language) for span in passages))
        self.known["overlap"] = round(share(stems(draft.question, language), whole), 4)
        if self.known["common_run"] > MOST_COMMON_WORDS:
            raise _CandidateRejected(Reason.LEAK, f"{self.known['common_run']} words in a row are those of the text")

    def _quotes(self, facts: Facts, draft: DraftQuestion) -> dict[str, str]:
        """The evidence for an answer: quotes, or the whole text if it should have no answer."""
        if self._is_unanswerable:
            return self._texts()
        return {str(number): facts.facts[used].quote for number, used in enumerate(draft.facts)}

    def _check(self, draft: DraftQuestion, quotes: Mapping[str, str]) -> Asks:
        """Run the checks, the critics and the derivation in one step; if critics disagree, ask them a second time."""
        values = {"question": draft.question, "answer": draft.answer, "quotes": dict(quotes)}
        about = {"question": draft.question, "quotes": dict(quotes)}
        critics = list(CRITICS) if self.work.reviews.critics and not self._is_unanswerable else []
        roles = [("critic", {**values, "critic": name, "role": CRITICS[name]}) for name in critics]
        checks, derived, *votes = yield from self._ask(("checks", values), ("derive", about), *roles)
        self.votes += [*checks, *votes]
        needed = _OF_UNANSWERABLE if self._is_unanswerable else {vote.criterion: YesNo.YES for vote in checks}
        failed = [vote for vote in checks if needed.get(vote.criterion, vote.verdict) != vote.verdict]
        if failed:
            raise _CandidateRejected(Reason.CHECKS, "; ".join(f"{vote.criterion}: {vote.reason}" for vote in failed))
        if len({vote.verdict for vote in votes}) > 1:
            reviews = {vote.critic: f"{vote.verdict}: {vote.reason}" for vote in votes}
            votes = yield from self._ask(*(("consensus", {**role, "reviews": reviews}) for _, role in roles))
            self.votes += votes
        rejecting = [vote for vote in votes if vote.verdict == CriticDecision.REJECT]
        if 2 * len(rejecting) > len(votes):
            raise _CandidateRejected(Reason.CHECKS, "; ".join(f"{vote.critic}: {vote.reason}" for vote in rejecting))
        return derived

    def _compare(self, draft: DraftQuestion, derived: DerivedAnswer) -> Asks:
        claims = {str(number): claim for number, claim in enumerate(derived.claims)}
        nuggets = {str(number): nugget.text for number, nugget in enumerate(draft.nuggets)}
        verdicts, assigned = yield from self._ask(
            ("support", {"query": draft.question, "claims": claims, "evidence": draft.answer}),
            ("nugget_assign", {"query": draft.question, "nuggets": nuggets, "answer": derived.answer}),
        )
        in_reference = np.array([claim.verdict == SupportVerdict.SUPPORTED for claim in verdicts])
        in_derived = np.array([nugget.verdict == NuggetAssignment.SUPPORT for nugget in assigned])
        self.votes += _votes("support", claims, verdicts)
        self.votes += _votes("nugget_assign", nuggets, assigned)
        agreement = float(claim_f1(in_reference, in_derived))
        self.known["agreement"] = round(agreement, 4)
        if agreement < LEAST_AGREEMENT:
            raise _CandidateRejected(
                Reason.OTHER_ANSWER, f"claims agree by {agreement:.2f} (F1) with: {derived.answer}"
            )

    def _closed_book(self, draft: DraftQuestion) -> Asks:
        """Record whether the model knows the answer without a text; this never rejects a question."""
        nuggets = {str(number): nugget.text for number, nugget in enumerate(draft.nuggets)}
        try:
            (answer,) = yield from self._ask(("closed_book", {"question": draft.question}))
            values = {"query": draft.question, "nuggets": nuggets, "answer": answer}
            (assigned,) = yield from self._ask(("nugget_assign", values))
        except CallError as error:
            if error.kind not in FINAL:
                raise
            return
        vital = np.array([nugget.vital for nugget in draft.nuggets])
        score = nugget_score([nugget.verdict for nugget in assigned], vital, only_vital=True, strict=False)
        self.known["closed_book"] = round(float(score), 4)

    def _texts(self) -> dict[str, str]:
        return {str(number): span.text for number, span in enumerate(self.source.spans)}

    def _ask(self, *steps: tuple[str, Mapping[str, Any]]) -> Asks:
        """Make the calls of several steps at once; return the replies."""
        calls = [self.work.asking.call(step, values, self.candidate.number) for step, values in steps]
        outcomes = yield calls
        return [self._value(outcome) for outcome in outcomes]

    def _value(self, outcome: Any) -> Any:
        if isinstance(outcome, CallError):
            raise outcome
        self.calls.append(outcome.call)
        return outcome.value

    def _item(
        self, state: State, reason: Reason | None = None, detail: str = "", failure: FailureKind | None = None
    ) -> WrittenItem:
        candidate = self.candidate
        return WrittenItem(
            candidate.item_id,
            candidate.type,
            candidate.profile,
            candidate.topic,
            candidate.number,
            candidate.round,
            tuple(span.id for span in self.source.spans),
            state,
            reason,
            detail,
            failure,
            **self.known,
            votes=tuple(self.votes),
            asked=tuple(self.calls),
        )


def _evidence(span: SourceSpan, fact: Fact) -> GoldenEvidence:
    return GoldenEvidence(span.doc_id, span.start + fact.start, span.start + fact.end, fact.quote)


def _votes(step: str, items: Mapping[str, str], judged: Sequence[Any]) -> list[Vote]:
    return [Vote(step, text, vote.verdict, vote.reason) for text, vote in zip(items.values(), judged, strict=True)]


def _profile_text(candidate: Candidate, dimensions: Sequence[Dimension]) -> str:
    assigned = dict(candidate.profile)
    lines = []
    for dimension in dimensions:
        value = next(value for value in dimension.values if value.name == assigned[dimension.name])
        lines.append(f"{dimension.name} ({dimension.description}): {value.name}: {value.description}")
    return "\n".join(lines)
