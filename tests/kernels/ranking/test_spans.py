"""Metrics of spans against plain Python over sets of characters, one query at a time."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.ranking import metrics, spans
from rankbeam.transforms.kernels.ranking.spans import SpanAssessment, Spans


@dataclass(frozen=True)
class Chunk:
    document: int
    start: int
    end: int

    @property
    def characters(self) -> set[tuple[int, int]]:
        return {(self.document, place) for place in range(self.start, self.end)}


@dataclass(frozen=True)
class Evidence(Chunk):
    grade: float
    group: int


Query = tuple[list[Chunk], list[Evidence]]
_PLACES = st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(1, 12))
_CHUNKS = st.builds(
    lambda place, empty: Chunk(place[0], place[1], place[1] + (0 if empty else place[2])), _PLACES, st.booleans()
)
_EVIDENCE = st.builds(
    lambda place, grade, group: Evidence(place[0], place[1], place[1] + place[2], grade, group),
    _PLACES,
    st.sampled_from([1.0, 2.0, 3.0]),
    st.integers(-1, 2),
)
QUERIES = st.lists(st.tuples(st.lists(_CHUNKS, max_size=6), st.lists(_EVIDENCE, max_size=5)), min_size=1, max_size=4)


def assessment(queries: list[Query]) -> SpanAssessment:
    return SpanAssessment(
        len(queries),
        _spans([chunks for chunks, _ in queries]),
        np.array([rank for chunks, _ in queries for rank in range(1, len(chunks) + 1)], np.int64),
        _spans([evidence for _, evidence in queries]),
        np.array([item.grade for _, evidence in queries for item in evidence]),
        np.array([item.group for _, evidence in queries for item in evidence], np.int64),
    )


def _spans(by_query: list[list[Chunk]] | list[list[Evidence]]) -> Spans:
    rows = [
        (query, evidence.document, evidence.start, evidence.end)
        for query, some in enumerate(by_query)
        for evidence in some
    ]
    return Spans(*np.array(rows, np.int64).reshape(-1, 4).T)


def is_relevant(chunk: Chunk, evidence: Evidence) -> bool:
    shared = chunk.characters & evidence.characters
    return bool(shared) and len(shared) >= 0.5 * min(len(chunk.characters), len(evidence.characters))


def credited_in(query: Query) -> list[tuple[int, Evidence]]:
    """The rank to which each evidence is credited, in the order of ranks."""
    chunks, left = query[0], list(query[1])
    credited = []
    for rank, chunk in enumerate(chunks, 1):
        here = [evidence for evidence in left if is_relevant(chunk, evidence)]
        left = [evidence for evidence in left if evidence not in here]
        credited += [(rank, evidence) for evidence in sorted(here, key=lambda evidence: -evidence.grade)]
    return credited


def within_budget(chunks: list[Chunk], budget: int) -> list[Chunk]:
    included = []
    for chunk in chunks:
        characters = min(len(chunk.characters), 4 * budget)
        included.append(Chunk(chunk.document, chunk.start, chunk.start + characters))
        budget -= min(budget, math.ceil(len(chunk.characters) / 4))
    return included


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def characters(chunks: list[Chunk], evidence: list[Evidence]) -> tuple[int, int, int]:
    retrieved = set().union(*(chunk.characters for chunk in chunks))
    relevant = set().union(*(chunk.characters for chunk in evidence))
    return len(retrieved & relevant), len(relevant), len(retrieved)


Cut = tuple[dict[str, int], Callable[[list[Chunk]], list[Chunk]]]
_CUTS = st.one_of(
    st.just(({}, lambda chunks: chunks)),
    st.integers(1, 7).map(lambda k: ({"cutoff": k}, lambda chunks: chunks[:k])),
    st.integers(1, 12).map(lambda tokens: ({"budget": tokens}, lambda chunks: within_budget(chunks, tokens))),
)


@given(QUERIES, _CUTS, st.sampled_from([1.0, 2.0]))
def test_span_metrics_count_characters(queries: list[Query], cut: Cut, rel: float) -> None:
    options, first = cut
    sizes = [
        characters(first(chunks), [evidence for evidence in some if evidence.grade >= rel]) for chunks, some in queries
    ]
    a = assessment(queries)
    assert spans.span_recall(a, rel=rel, **options).tolist() == [share(s, e) for s, e, _ in sizes]
    assert spans.span_precision(a, rel=rel, **options).tolist() == [share(s, c) for s, _, c in sizes]
    assert spans.span_iou(a, rel=rel, **options).tolist() == [share(s, e + c - s) for s, e, c in sizes]


@given(QUERIES, st.integers(1, 7), st.sampled_from([1.0, 2.0]))
def test_all_groups_needs_one_evidence_of_each(queries: list[Query], k: int, rel: float) -> None:
    expected = []
    for query in queries:
        needed = {evidence.group for evidence in query[1] if evidence.grade >= rel} - {-1}
        reached = {evidence.group for rank, evidence in credited_in(query) if rank <= k and evidence.grade >= rel} - {
            -1
        }
        expected.append(float(bool(needed) and reached == needed))
    assert spans.all_groups(assessment(queries), cutoff=k, rel=rel).tolist() == expected


@given(QUERIES, st.integers(1, 7))
def test_ranked_metrics_credit_each_evidence_once(queries: list[Query], k: int) -> None:
    a = assessment(queries)
    ndcg, recall, ap, precision, rr = [], [], [], [], []
    for query in queries:
        credited, grades = credited_in(query), sorted((evidence.grade for evidence in query[1]), reverse=True)
        places = [(max(rank, number), evidence.grade) for number, (rank, evidence) in enumerate(credited, 1)]
        gain = sum(grade / math.log2(place + 1) for place, grade in places if place <= k)
        ideal = sum(grade / math.log2(place + 1) for place, grade in enumerate(grades[:k], 1))
        ndcg.append(share(gain, ideal))
        recall.append(share(sum(rank <= k for rank, _ in credited), len(grades)))
        at_each = [number / place for number, (place, _) in enumerate(places, 1) if place <= k]
        ap.append(share(sum(at_each), len(grades)))
        precision.append(len({rank for rank, _ in credited if rank <= k}) / k)
        rr.append(next((1 / rank for rank, _ in credited if rank <= k), 0.0))
    assert metrics.ndcg(a.by_place, cutoff=k) == pytest.approx(ndcg, abs=1e-12)
    assert metrics.recall(a.by_evidence, cutoff=k).tolist() == recall
    assert metrics.average_precision(a.by_place, cutoff=k) == pytest.approx(ap, abs=1e-12)
    assert metrics.precision(a.by_chunk, cutoff=k).tolist() == precision
    assert metrics.reciprocal_rank(a.by_chunk, cutoff=k).tolist() == rr


@given(QUERIES)
def test_no_value_exceeds_1(queries: list[Query]) -> None:
    a = assessment(queries)
    kernels = [spans.span_recall, spans.span_precision, spans.span_iou, spans.all_groups]
    values = [kernel(a) for kernel in kernels] + [metrics.recall(a.by_evidence), metrics.set_precision(a.by_chunk)]
    ideals = (metrics.ndcg, metrics.average_precision, metrics.r_precision)
    for result in [*values, *(kernel(a.by_place) for kernel in ideals), metrics.capped_recall(a.by_place, cutoff=2)]:
        assert ((result >= 0) & (result <= 1 + 1e-12)).all()


@given(
    st.lists(
        _EVIDENCE, min_size=1, max_size=5, unique_by=lambda evidence: (evidence.document, evidence.start, evidence.end)
    )
)
def test_all_evidence_first_is_perfect_with_chunks_of_any_size(evidence: list[Evidence]) -> None:
    """Whole documents in one chunk each, or one chunk an evidence: both rank everything there is at the top."""
    best = sorted(evidence, key=lambda item: -item.grade)
    highest = {item.document: max(e.grade for e in evidence if e.document == item.document) for item in evidence}
    whole = [Chunk(document, 0, 40) for document in sorted(highest, key=lambda one: -highest[one])]
    for chunks in ([Chunk(item.document, item.start, item.end) for item in best], whole):
        a = assessment([(chunks, evidence)])
        assert metrics.recall(a.by_evidence).tolist() == [1.0]
        assert metrics.ndcg(a.by_place, cutoff=1).tolist() == [1.0]


def test_a_chunk_strictly_inside_a_long_evidence_is_relevant() -> None:
    a = assessment([([Chunk(0, 10, 12)], [Evidence(0, 0, 100, 1.0, 0)])])
    assert metrics.recall(a.by_evidence).tolist() == [1.0]


def test_touching_spans_share_nothing() -> None:
    a = assessment([([Chunk(0, 0, 10)], [Evidence(0, 10, 20, 1.0, 0)])])
    assert metrics.recall(a.by_evidence).tolist() == [0.0]


def test_a_chunk_of_unknown_place_is_relevant_to_nothing_and_counts_as_retrieved() -> None:
    a = assessment([([Chunk(-1, 0, 10), Chunk(0, 0, 10)], [Evidence(0, 0, 10, 1.0, 0)])])
    assert metrics.reciprocal_rank(a.by_chunk).tolist() == [0.5]
    assert spans.span_precision(a).tolist() == [0.5]


def test_the_grade_of_a_chunk_is_the_highest_that_is_credited_to_it() -> None:
    evidence = [Evidence(0, 0, 10, 1.0, 0), Evidence(0, 10, 20, 3.0, 0)]
    a = assessment([([Chunk(0, 0, 20), Chunk(0, 0, 10), Chunk(1, 0, 10)], evidence)])
    np.testing.assert_array_equal(a.chunk_grade, [3.0, 0.0, math.nan])
