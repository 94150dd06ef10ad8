"""The plan: the number of questions of each type in each stratum, and the spans from which they are made.

A stratum is a topic, crossed with attributes of the documents. Its quota is proportional to the square root of its
number of spans. All choices are by hash, so the same seed and documents give the same plan.
New items are screened by the plan, and a model may suggest its profiles from a sample.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import islice, zip_longest
from typing import ClassVar

from rankbeam.transforms.goldens.asking import AskingWork
from rankbeam.transforms.goldens.library import Library
from rankbeam.transforms.goldens.previous import PreviousQuestions
from rankbeam.transforms.goldens.records.items import (
    TYPES,
    UNANSWERABLE,
    Candidate,
    Dimension,
    PooledPassages,
    Profile,
    Reason,
    SourceSpan,
    State,
    WritingTask,
    WrittenItem,
    item_id,
)
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.judged import USEFUL_GRADE
from rankbeam.transforms.kernels.minhash import first_alike
from rankbeam.transforms.kernels.sampling import apportion, apportion_by_root, in_turn, proportional_table, shuffled
from rankbeam.transforms.kernels.search.nearest import Vectors, first_near
from rankbeam.transforms.records.calls.steps import Call, Steps
from rankbeam.transforms.records.errors import CallError

ROUNDS = 4  # maximum number of rounds: a later round makes up for what earlier rounds lacked
_ALIKE = 4  # maximum questions of one type from the same spans
_LEAST_ACCEPTANCE = Fraction(1, 4)

Stratum = tuple[str, ...]  # the number of a topic, and the values of attributes
Cell = tuple[Stratum, str]  # a stratum and a type


@dataclass(frozen=True)
class PlannedBenchmark:
    """The plan of a benchmark."""

    items: int
    types: Mapping[str, int]
    dimensions: tuple[Dimension, ...]
    attributes: tuple[str, ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class GoldensPlan:
    """The quotas, and the spans of every stratum."""

    library: Library
    planned: PlannedBenchmark
    previous: PreviousQuestions = field(default_factory=PreviousQuestions)

    @cached_property
    def strata(self) -> Mapping[Stratum, tuple[SourceSpan, ...]]:
        """The spans by stratum: one from each document in turn, in an order that the seed decides."""
        members = grouped((self._stratum_of[span.doc_id], span) for span in self.library.spans)
        return {stratum: tuple(self._in_turn(members[stratum])) for stratum in sorted(members)}

    @cached_property
    def quotas(self) -> Mapping[Cell, int]:
        """The number of questions in each cell; new ones go to the cells in which earlier ones are short."""
        previous = Counter(self.cell(item) for item in self.previous.items)
        lacking = {cell: max(0, quota - previous[cell]) for cell, quota in self._shares.items()}
        new = self.planned.items - previous.total()
        added = dict(zip(lacking, apportion(list(lacking.values()), new), strict=True)) if new else {}
        cells = (*lacking, *sorted(previous.keys() - lacking.keys()))  # the file may not have all earlier types
        return {cell: previous[cell] + added.get(cell, 0) for cell in cells}

    @cached_property
    def _shares(self) -> Mapping[Cell, int]:
        """The number of questions in each cell if all are new."""
        sizes = [len(spans) for spans in self.strata.values()]
        types = list(self.planned.types)
        rows = apportion_by_root(sizes, self.planned.items)
        columns = apportion(list(self.planned.types.values()), self.planned.items)
        table = proportional_table(rows, columns)
        return {
            (stratum, kind): table[row][column]
            for row, stratum in enumerate(self.strata)
            for column, kind in enumerate(types)
        }

    def round(self, number: int, before: Sequence[WrittenItem], accepted: Collection[str]) -> list[WritingTask]:
        lacking = self.shortfalls(before, accepted)
        refused = (golden.made for golden in self.previous.refused.values())
        used = {(item.type, item.spans, item.number) for item in (*before, *refused)}
        new = [item for item in before if item.item_id not in self.previous.goldens]
        per_type = Counter(item.type for item in new)
        accepted_per_type = Counter(item.type for item in new if item.item_id in accepted)
        position = len(before)
        by_spans: dict[tuple[str, ...], tuple[tuple[SourceSpan, ...], list[Candidate]]] = {}
        for cell, missing in lacking.items():
            rate = Fraction(accepted_per_type[cell[1]], per_type[cell[1]]) if per_type[cell[1]] else Fraction(1)
            count = -int(-missing // max(rate, _LEAST_ACCEPTANCE))
            for spans, alike in islice(self._sources(cell, used), count):
                profile = self._profile(position)
                identity = item_id(spans, cell[1], profile, alike)
                topic = self.library.topics[spans[0].doc_id]
                candidate = Candidate(identity, cell[1], profile, topic, alike, number)
                by_spans.setdefault(tuple(span.id for span in spans), (spans, []))[1].append(candidate)
                position += 1
        return [WritingTask(spans, tuple(candidates)) for spans, candidates in by_spans.values()]

    def shortfalls(self, before: Iterable[WrittenItem], accepted: Collection[str]) -> dict[Cell, int]:
        """The number of questions still missing, by stratum and type; only for those that lack some."""
        have = Counter(self.cell(item) for item in before if item.item_id in accepted)
        return {cell: quota - have[cell] for cell, quota in self.quotas.items() if quota > have[cell]}

    def cell(self, item: WrittenItem) -> Cell:
        return self._stratum_of[item.source_document], item.type

    @cached_property
    def _stratum_of(self) -> Mapping[str, Stratum]:
        """The stratum of every document."""
        return {
            document.id: (
                f"{self.library.topics[document.id]:02}",
                *(document.attributes.get(name, "") for name in self.planned.attributes),
            )
            for document in self.library.documents
        }

    def _in_turn(self, spans: Sequence[SourceSpan]) -> Iterator[SourceSpan]:
        """The first span of every document, then the second span of every document, and so on."""
        seed = self.planned.seed
        named = {span.id: span for span in spans}
        by_document = grouped((span.doc_id, span.id) for span in spans)
        order = [shuffled(by_document[name], seed, "span") for name in shuffled(by_document, seed, "document")]
        for names in zip_longest(*order):
            yield from (named[name] for name in names if name is not None)

    def _sources(
        self, cell: Cell, used: Collection[tuple[str, tuple[str, ...], int]]
    ) -> Iterator[tuple[tuple[SourceSpan, ...], int]]:
        """The unused spans of a cell's questions, each with its number; types begin with different documents."""
        stratum, kind = cell
        if cell not in self._shares:
            return
        spans = self.strata[stratum]
        first = sum(
            self._shares[stratum, other] for other in list(self.planned.types)[: list(self.planned.types).index(kind)]
        )
        for alike in range(_ALIKE):
            for place in range(len(spans)):
                span = spans[(first + place) % len(spans)]
                other = self._linked_span(span) if TYPES[kind].spans > 1 else None
                source = (span,) if other is None else (span, other)
                if len(source) == TYPES[kind].spans and (kind, tuple(one.id for one in source), alike) not in used:
                    yield source, alike

    @cached_property
    def _linked_span(self) -> Callable[[SourceSpan], SourceSpan | None]:
        return cache(self.library.linked)

    def _profile(self, position: int) -> Profile:
        """The profile at a position; every value of a dimension occurs equally often."""
        seed = self.planned.seed
        return tuple(
            (dimension.name, in_turn(position, [value.name for value in dimension.values], seed, dimension.name))
            for dimension in self.planned.dimensions
        )


def screen_items(
    plan: GoldensPlan,
    before: Sequence[WrittenItem],
    accepted: Sequence[WrittenItem],
    new: Sequence[WrittenItem],
    vectors: Vectors,
    least_cosine: float,
) -> list[WrittenItem]:
    """Reject new items that are near-duplicates, by wording or by embeddings if there are any, or exceed the quotas."""
    candidates = sorted((item for item in new if item.state is State.ACCEPTED), key=lambda item: item.item_id)
    every = [*accepted, *candidates]
    questions = [item.question for item in every]
    same = first_near(questions, vectors, least_cosine, first_alike(questions))[len(accepted) :]
    lacking = Counter(plan.shortfalls(before, {item.item_id for item in accepted}))
    verdicts: dict[str, WrittenItem] = {}
    for item, (place, first) in zip(candidates, enumerate(same, start=len(accepted)), strict=True):
        if first != place:
            detail = f"a near-duplicate of {every[first].item_id}: {every[first].question}"
            verdicts[item.item_id] = reject_item(item, Reason.DUPLICATE, detail)
        elif lacking[plan.cell(item)] <= 0:
            verdicts[item.item_id] = reject_item(item, Reason.SURPLUS, "its stratum has all the questions of its type")
        else:
            lacking[plan.cell(item)] -= 1
    return [verdicts.get(item.item_id, item) for item in new]


def apply_grades(new: Sequence[WrittenItem], pooled: Mapping[str, PooledPassages]) -> list[WrittenItem]:
    """Reject new items that are marked as unanswerable but are answered by some passage."""
    return [_graded_item(item, pooled[item.item_id]) if item.item_id in pooled else item for item in new]


def _graded_item(item: WrittenItem, pooled: PooledPassages) -> WrittenItem:
    failed = next((grade for grade in pooled.grades if grade.failure is not None), None)
    if failed is not None:
        detail = f"the grade of {failed.span}: {failed.failure}: {failed.reason}"
        return replace(item, state=State.FAILED, detail=detail, failure=failed.failure)
    answering = next((grade for grade in pooled.grades if (grade.grade or 0) >= USEFUL_GRADE), None)
    if item.type == UNANSWERABLE and answering is not None:
        detail = f"{answering.span} has grade {answering.grade}: {answering.reason}"
        return reject_item(item, Reason.ANSWERED_ELSEWHERE, detail)
    return item


def reject_item(item: WrittenItem, reason: Reason, detail: str) -> WrittenItem:
    return replace(item, state=State.REJECTED, reason=reason, detail=detail)


STAGE = "profiles"
_MOST_CHARACTERS = 40_000  # maximum characters of all texts in the call, about 10,000 tokens


@dataclass(frozen=True)
class SuggestedProfiles:
    """The dimensions that a model suggests, or the reason why there are none."""

    dimensions: tuple[Dimension, ...] = ()
    model_version: str = ""
    problem: str = ""


@dataclass(frozen=True)
class SuggestProfiles(AskingWork):
    """Suggest profiles; a `Work` whose items are samples of spans."""

    stage: ClassVar[str] = STAGE

    @property
    def services(self) -> Sequence[str]:
        return [self.asking.writer.name]

    def steps(self, item: Sequence[SourceSpan]) -> Steps[SuggestedProfiles]:
        (outcome,) = yield [self.call(item)]
        if isinstance(outcome, CallError):
            return SuggestedProfiles(problem=f"{outcome.kind}: {outcome.message}")
        return SuggestedProfiles(outcome.value, outcome.call.model_version)

    def call(self, item: Sequence[SourceSpan]) -> Call:
        """The call about a sample; each text is cut to its share of the characters."""
        most = _MOST_CHARACTERS // len(item)
        return self.asking.call(STAGE, {"texts": {str(number): span.text[:most] for number, span in enumerate(item)}})


def sample_spans(plan: GoldensPlan, count: int) -> tuple[SourceSpan, ...]:
    """The first span of every stratum, then the second span of every stratum, and so on."""
    in_turn = (span for spans in zip_longest(*plan.strata.values()) for span in spans if span is not None)
    return tuple(islice(in_turn, count))
