"""Chunks against evidence: rankings of character spans, judged by the spans that an answer rests on.

A span [start, end) counts code points of a document's text. A chunk is relevant to an evidence if they share at
least half of the shorter one; each evidence is credited once, to the first such chunk of a ranking. So one set of
evidence judges every way to cut documents into chunks, and chunks that overlap each other do not count twice.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankbeam.transforms.kernels.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    concatenated_ranges,
    offsets_of,
    position_in_group,
    runs_of,
)
from rankbeam.transforms.kernels.chunks import CODE_POINTS_PER_TOKEN
from rankbeam.transforms.kernels.ranking import hits
from rankbeam.transforms.kernels.ranking.rankings import Assessment


@dataclass(frozen=True)
class Spans:
    """Spans of documents, by query."""

    query: IntArray  # int64[m], position of the query of each span, ascending
    # int64[m], a number for the document, the same in chunks and evidence of one query; -1 if the position of a chunk
    # in its document is unknown: then only its length is right.
    document: IntArray
    start: IntArray  # int64[m]
    end: IntArray  # int64[m]

    @property
    def length(self) -> IntArray:
        """int64[m], code points of each span."""
        return self.end - self.start

    def only(self, selected: BoolArray) -> "Spans":
        return Spans(self.query[selected], self.document[selected], self.start[selected], self.end[selected])

    def joined(self, other: "Spans") -> "Spans":
        """The spans of both, not sorted by query."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("query", "document", "start", "end"))
        return Spans(*map(np.concatenate, pairs))


@dataclass(frozen=True)
class SpanAssessment:
    """n rankings of chunks and the evidence of their queries."""

    queries: int
    chunks: Spans  # the retrieved ones, by query and rank
    rank: IntArray  # int64[m], of each chunk: 1, 2, 3, … inside each query
    evidence: Spans  # by query
    grade: FloatArray  # float64[p], of each evidence
    # int64[p], the same for evidences of one query that are interchangeable; -1 for evidence that is helpful but not
    # needed.
    group: IntArray

    @cached_property
    def credited(self) -> IntArray:
        """int64[p]: the chunk to which each evidence is credited, the first one that is relevant to it, or -1."""
        chunk, evidence = matches(self.chunks, self.evidence)
        first = np.full(len(self.grade), len(self.rank))
        np.minimum.at(first, evidence, chunk)  # chunks of a query are in the order of their ranks
        first[first == len(self.rank)] = -1
        return first

    @cached_property
    def chunk_grade(self) -> FloatArray:
        """float64[m]: the highest grade credited to each chunk; 0 if only chunks above it are; NaN without evidence."""
        grade = np.full(len(self.rank), np.nan)
        grade[matches(self.chunks, self.evidence)[0]] = 0.0
        row = np.flatnonzero(self.credited >= 0)
        np.fmax.at(grade, self.credited[row], self.grade[row])
        return grade

    @cached_property
    def by_evidence(self) -> Assessment:
        """Every credited evidence as a hit at the rank of its chunk, for recall."""
        return self._assessment(*self._credits)

    @cached_property
    def by_place(self) -> Assessment:
        """Every credited evidence as a hit at a rank of its own, for metrics with an ideal ranking.

        That is the rank of its chunk, but never before its number among the credited evidences: a chunk that holds
        three of them takes three ranks, as if each had a chunk of its own. So no value exceeds 1, and a ranking that
        begins with all evidence has the value 1 with chunks of any size.
        """
        query, rank, grade = self._credits
        return self._assessment(query, np.maximum(rank, position_in_group(query, self.queries) + 1), grade)

    @cached_property
    def by_chunk(self) -> Assessment:
        """Every chunk that is credited with evidence as one hit, for metrics that look at ranks alone."""
        hit = np.flatnonzero(self.chunk_grade > 0)
        return self._assessment(self.chunks.query[hit], self.rank[hit], self.chunk_grade[hit])

    @cached_property
    def _credits(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Query, rank and grade of the credited evidences, by query, rank and grade, the highest grade first."""
        row = np.flatnonzero(self.credited >= 0)
        query, rank, grade = self.evidence.query[row], self.rank[self.credited[row]], self.grade[row]
        order = np.lexsort((-grade, rank, query))
        return query[order], rank[order], grade[order]

    @property
    def retrieved(self) -> IntArray:
        """int64[n], chunks retrieved per query."""
        return np.bincount(self.chunks.query, minlength=self.queries)

    def _assessment(self, query: IntArray, rank: IntArray, grade: FloatArray) -> Assessment:
        pool = np.lexsort((-self.grade, self.evidence.query))
        return Assessment(
            retrieved=self.retrieved,
            hit_query=query,
            hit_rank=rank,
            hit_grade=grade,
            hit_repeated=np.zeros(len(query), bool),
            pool_query=self.evidence.query[pool],
            pool_grade=self.grade[pool],
        )

    def upto(self, top_k: int | None) -> "SpanAssessment":
        """The same rankings cut after `top_k` chunks; None keeps all."""
        if top_k is None:
            return self
        within = self.rank <= top_k
        return replace(self, chunks=self.chunks.only(within), rank=self.rank[within])

    def seen(self, cutoff: int | None, budget: int | None) -> Spans:
        """The chunks up to a rank, or to a number of tokens; the chunk that exceeds these counts with its beginning."""
        if cutoff is not None:
            return self.chunks.only(self.rank <= cutoff)
        if budget is None:
            return self.chunks
        tokens = -(-self.chunks.length // CODE_POINTS_PER_TOKEN)
        before = np.cumsum(tokens) - tokens
        first = offsets_of(self.chunks.query, self.queries)[:-1]
        before = before - np.append(before, 0)[first][self.chunks.query]
        most = np.maximum(budget - before, 0) * CODE_POINTS_PER_TOKEN
        return replace(self.chunks, end=np.minimum(self.chunks.end, self.chunks.start + most))


def matches(chunks: Spans, evidence: Spans) -> tuple[IntArray, IntArray]:
    """Every pair of a chunk and an evidence to which it is relevant.

    They are of one query and one document, and share at least half of the shorter one.

    Returns:
        int64[r], int64[r]: rows of the chunks, and of the evidence.

    >>> [rows.tolist() for rows in matches(EXAMPLE.chunks, EXAMPLE.evidence)]
    [[0, 1, 3, 3], [0, 0, 1, 2]]
    """
    spans = chunks.joined(evidence)
    key = spans.query * (int(spans.document.max(initial=-1)) + 2) + spans.document + 1
    number = np.unique(key, return_inverse=True)[1]
    chunk_document, evidence_document = number[: len(chunks.query)], number[len(chunks.query) :]
    order = np.argsort(evidence_document, kind="stable")
    offsets = offsets_of(evidence_document[order], int(number.max(initial=-1)) + 1)
    counts = np.diff(offsets)[chunk_document]
    chunk = np.repeat(np.arange(len(chunk_document)), counts)
    pair = order[concatenated_ranges(offsets[:-1][chunk_document], counts)]
    shared = np.minimum(chunks.end[chunk], evidence.end[pair]) - np.maximum(chunks.start[chunk], evidence.start[pair])
    shorter = np.minimum(chunks.length[chunk], evidence.length[pair])
    is_relevant = (shared > 0) & (2 * shared >= shorter) & (chunks.document[chunk] >= 0)
    return chunk[is_relevant], pair[is_relevant]


def covered_length(spans: Spans, queries: int) -> FloatArray:
    """The code points that some spans cover together, per query; each counts once.

    The lengths of chunks whose position is unknown are added.

    >>> covered_length(EXAMPLE.chunks, 1).tolist()
    [250.0]
    """
    known = spans.document >= 0
    total = np.bincount(spans.query[~known], spans.length[~known], minlength=queries)
    placed = spans.only(known & (spans.length > 0))
    order = np.lexsort((placed.start, placed.document, placed.query))
    query, document, start, end = (
        column[order] for column in (placed.query, placed.document, placed.start, placed.end)
    )
    shift = runs_of(query, document) * (int(end.max(initial=0)) + 1)  # the groups one after the other on one line
    start, end = start + shift, end + shift
    reached = np.concatenate([[0], np.maximum.accumulate(end)[:-1]])[: len(end)]
    length = np.maximum(end - np.maximum(start, reached), 0)
    return (total + np.bincount(query, length, minlength=queries)).astype(np.float64)


def span_recall(
    a: SpanAssessment, *, cutoff: int | None = None, budget: int | None = None, rel: float = 1.0
) -> FloatArray:
    """Characters of evidence that the chunks cover, over all characters of evidence.

    >>> span_recall(EXAMPLE, cutoff=2).tolist(), span_recall(EXAMPLE, budget=50).tolist()
    ([0.5], [0.85])
    """
    shared, evidence, _ = _characters(a, cutoff, budget, rel)
    return hits.ratio(shared, evidence)


def span_precision(
    a: SpanAssessment, *, cutoff: int | None = None, budget: int | None = None, rel: float = 1.0
) -> FloatArray:
    """Characters of evidence that the chunks cover, over all characters of the chunks, each counted once.

    >>> span_precision(EXAMPLE, cutoff=2).tolist()
    [0.4]
    """
    shared, _, chunks = _characters(a, cutoff, budget, rel)
    return hits.ratio(shared, chunks)


def span_iou(
    a: SpanAssessment, *, cutoff: int | None = None, budget: int | None = None, rel: float = 1.0
) -> FloatArray:
    """Characters in both chunks and evidence, over the characters in either (intersection over union).

    >>> span_iou(EXAMPLE, cutoff=2).round(4).tolist()
    [0.2857]
    """
    shared, evidence, chunks = _characters(a, cutoff, budget, rel)
    return hits.ratio(shared, evidence + chunks - shared)


def all_groups(a: SpanAssessment, *, cutoff: int | None = None, rel: float = 1.0) -> FloatArray:
    """1 if at least one evidence of every group is credited to a chunk among the first `cutoff`, else 0.

    Evidence that belongs to no group is not needed. A query without a group of relevant evidence scores 0.

    >>> all_groups(EXAMPLE, cutoff=3).tolist(), all_groups(EXAMPLE, cutoff=4).tolist()
    ([0.0], [1.0])
    """
    rank = np.append(a.rank, 0)[a.credited]
    relevant = a.grade >= rel
    needed = _groups(a, relevant)
    reached = _groups(a, relevant & (a.credited >= 0) & hits.upto(rank, cutoff))
    has_all: BoolArray = (needed > 0) & (reached == needed)
    return has_all.astype(np.float64)


def _groups(a: SpanAssessment, chosen: BoolArray) -> IntArray:
    """int64[n]: the different groups of the chosen evidences of each query."""
    chosen = chosen & (a.group >= 0)
    pairs = np.unique(np.stack([a.evidence.query[chosen], a.group[chosen]]), axis=1)
    return np.bincount(pairs[0], minlength=a.queries)


def _characters(
    a: SpanAssessment, cutoff: int | None, budget: int | None, rel: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The characters that evidence and chunks share, those of the evidence, and those of the chunks, per query."""
    chunks, evidence = a.seen(cutoff, budget), a.evidence.only(a.grade >= rel)
    retrieved, relevant = covered_length(chunks, a.queries), covered_length(evidence, a.queries)
    return retrieved + relevant - covered_length(chunks.joined(evidence), a.queries), relevant, retrieved


EXAMPLE = SpanAssessment(
    queries=1,
    chunks=Spans(np.zeros(4, int), np.array([0, 0, 1, 2]), np.array([0, 40, 0, 0]), np.array([60, 100, 50, 100])),
    rank=np.array([1, 2, 3, 4]),
    evidence=Spans(np.zeros(3, int), np.array([0, 2, 2]), np.array([30, 0, 50]), np.array([70, 30, 60])),
    grade=np.array([2.0, 1.0, 1.0]),
    group=np.array([0, 1, 1]),
)
"""One query, for the examples here: two overlapping chunks of document 0, one of document 1, and one of document 2.

Of 80 characters of evidence, 40 are in document 0; the others, of which one is enough, are two spans of document 2."""
