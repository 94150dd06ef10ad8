"""Questions that a benchmark takes over from an earlier one: those whose documents have not changed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from rankbeam.transforms.goldens.library import Library
from rankbeam.transforms.goldens.records.items import (
    Golden,
    GoldenEvidence,
    PooledPassages,
    Review,
    ReviewDecision,
    WrittenItem,
)
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import pluralize


@dataclass(frozen=True)
class PreviousQuestions:
    """Questions of an earlier benchmark."""

    goldens: Mapping[str, Golden] = field(default_factory=dict)  # taken over: their documents have the same texts
    # Rejected by people; they are stored, so that no later benchmark writes them again.
    refused: Mapping[str, Golden] = field(default_factory=dict)
    reviews: Mapping[str, Review] = field(default_factory=dict)  # people's decisions about both, by id
    outdated: tuple[str, ...] = ()  # ids of questions with documents that have changed or are gone
    reviewed_and_outdated: int = 0
    unchanged: int = 0  # documents with the same text as before
    lost_grades: int = 0  # of documents that have changed or are gone
    pool: int = 0  # documents that were graded for each question

    @cached_property
    def items(self) -> tuple[WrittenItem, ...]:
        return tuple(golden.made for golden in self.goldens.values())

    @property
    def pooled(self) -> dict[str, PooledPassages]:
        """The earlier grades, which are not paid for again."""
        return {item_id: PooledPassages(item_id, golden.grades, ()) for item_id, golden in self.goldens.items()}

    def note(self) -> Iterator[str]:
        """A warning with the numbers of questions that are taken over, and of those that are not, with the reason."""
        count = len(self.goldens) + len(self.refused) + len(self.outdated)
        if not count:
            return
        reasons = []
        if self.outdated:
            reviewed = f", {self.reviewed_and_outdated:,} of them reviewed" if self.reviewed_and_outdated else ""
            lost = pluralize(len(self.outdated), "has", "have")
            reasons.append(f"{lost} documents that changed or are gone{reviewed}, such as {self.outdated[0]}")
        if self.refused:
            reasons.append(f"{pluralize(len(self.refused), 'was', 'were')} rejected by reviewers")
        yield "; ".join([f"previous: {len(self.goldens):,} of {count:,} questions are taken over", *reasons])


def take_over(
    items: Iterable[Golden], reviews: Mapping[str, Review], texts: Mapping[str, str], library: Library, pool: int
) -> PreviousQuestions:
    """Choose the questions to take over; `texts` are the earlier documents, and `pool` of them were graded for each."""
    names = new_names(texts, library)
    texts = {names.get(name, name): text for name, text in texts.items()}
    items = [_with_names(golden, names) for golden in items]
    unchanged = {document.id for document in library.documents if texts.get(document.id) == document.text}
    goldens, refused = dict[str, Golden](), dict[str, Golden]()
    outdated, lost = list[str](), 0
    for golden in items:
        item, review = golden.made, reviews.get(golden.made.item_id)
        if not unchanged.issuperset((*item.source_documents, *item.doc_ids)):
            outdated.append(item.item_id)
            continue
        moved = replace(item, topic=library.topics[item.source_document])
        grades = tuple(grade for grade in golden.grades if grade.doc_id in unchanged and grade.grade is not None)
        is_rejected = review is not None and review.decision is ReviewDecision.REJECT
        (refused if is_rejected else goldens)[item.item_id] = replace(golden, made=moved, grades=grades)
        lost += 0 if is_rejected else len(golden.grades) - len(grades)
    return PreviousQuestions(
        goldens,
        refused,
        {
            name: replace(review, evidence=review.evidence and _evidence_with_names(review.evidence, names))
            for name, review in reviews.items()
            if name in goldens or name in refused
        },
        tuple(outdated),
        sum(name in reviews for name in outdated),
        len(unchanged),
        lost,
        pool,
    )


def new_names(texts: Mapping[str, str], library: Library) -> dict[str, str]:
    """The new ids of documents under their old ids, where only one is gone, and only one is new, with a text."""
    now = {document.id: document.text for document in library.documents}
    gone = grouped((text, name) for name, text in texts.items() if name not in now)
    new = grouped((text, name) for name, text in now.items() if name not in texts)
    return {names[0]: new[text][0] for text, names in gone.items() if len(names) == 1 and len(new.get(text, ())) == 1}


def _with_names(golden: Golden, names: Mapping[str, str]) -> Golden:
    item = golden.made
    spans, evidence = tuple(_renamed(span, names) for span in item.spans), _evidence_with_names(item.evidence, names)
    grades = tuple(
        replace(grade, span=_renamed(grade.span, names), doc_id=names.get(grade.doc_id, grade.doc_id))
        for grade in golden.grades
    )
    return replace(golden, made=replace(item, spans=spans, evidence=evidence), grades=grades)


def _renamed(span: str, names: Mapping[str, str]) -> str:
    doc_id, mark, place = span.rpartition("#")
    return names.get(doc_id, doc_id) + mark + place


def _evidence_with_names(evidence: Iterable[GoldenEvidence], names: Mapping[str, str]) -> tuple[GoldenEvidence, ...]:
    return tuple(replace(piece, doc_id=names.get(piece.doc_id, piece.doc_id)) for piece in evidence)
