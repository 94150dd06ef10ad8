"""The rankings of one source as spans, joined with the evidence of their queries.

Evidence consists of spans of documents, which judge chunks if the dataset's unit is `span`. In a pool of judgements an
evidence has an id, as a document does: that of its span, with its group in brackets.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray
from rankbeam.transforms.kernels.ranking.pools import Pool
from rankbeam.transforms.kernels.ranking.spans import SpanAssessment, Spans
from rankbeam.transforms.records.chunking import chunk_id, parse_chunk_id
from rankbeam.transforms.records.rankings.ranked import RankedSource

_EVIDENCE_ID = re.compile(r"(.+#\d+-\d+)(?: \(([^#]+)\))?", re.DOTALL)


def evidence_id(doc_id: str, start: int, end: int, group: str | None) -> str:
    """The id of an evidence.

    >>> evidence_id("manual", 10, 90, "a"), evidence_id("manual", 10, 90, None)
    ('manual#10-90 (a)', 'manual#10-90')
    """
    return chunk_id(doc_id, start, end) + ("" if group is None else f" ({group})")


def parse_evidence_id(name: str) -> tuple[str, int, int, str | None]:
    """Document, start, end and group in an evidence's id.

    >>> parse_evidence_id("manual#10-90 (a)"), parse_evidence_id("c#3#10-90")
    (('manual', 10, 90, 'a'), ('c#3', 10, 90, None))
    """
    match = _EVIDENCE_ID.fullmatch(name)
    span = None if match is None else parse_chunk_id(match[1])
    if match is None or span is None:
        raise ValueError(f"{name!r} is not the id of an evidence")
    return *span, match[2]


@dataclass(frozen=True)
class SpanEvidence:
    """The evidence of n queries."""

    queries: int  # n
    spans: Spans  # by query
    grade: FloatArray  # float64[p]
    group: IntArray
    document: dict[str, int]

    @classmethod
    def of(cls, pool: Pool) -> "SpanEvidence":
        """The evidence in a pool of judgements, whose ids are those of `evidence_id`."""
        document: dict[str, int] = {}
        group: dict[tuple[int, int | str], int] = {}
        parsed = list(zip(pool.query.tolist(), map(parse_evidence_id, pool.doc_id.to_pylist()), strict=True))
        with_groups = {number for number, (*_, name) in parsed if name is not None}
        rows = []
        for row, (number, (doc_id, start, end, name)) in enumerate(parsed):
            group_number = -1
            if name is not None or number not in with_groups:
                group_number = group.setdefault((number, row if name is None else name), len(group))
            rows.append((document.setdefault(doc_id, len(document)), start, end, group_number))
        documents, starts, ends, groups = np.array(rows, np.int64).reshape(-1, 4).T
        return cls(pool.queries, Spans(pool.query, documents, starts, ends), pool.grade, groups, document)


@dataclass(frozen=True)
class RankedSpans:
    """The rankings of one source under one dialect."""

    ranked: RankedSource  # the rows in order, not cut
    evidence: SpanEvidence

    @cached_property
    def assessment(self) -> SpanAssessment:
        """All rankings, not cut."""
        evidence, ranked = self.evidence, self.ranked.ranked
        return SpanAssessment(
            evidence.queries, self._chunks, ranked.rank, evidence.spans, evidence.grade, evidence.group
        )

    @cached_property
    def row_grade(self) -> FloatArray:
        """float64[m], by row of the source: the grade that it is credited with; NaN if it has no evidence."""
        grade = np.full(len(self.ranked.retrieved.query), np.nan)
        grade[self.ranked.ranked.row] = self.assessment.chunk_grade
        return grade

    @property
    def touches(self) -> bool:
        """True if some chunk is of a document that has evidence for its query."""
        chunks, evidence = self._chunks, self.evidence.spans
        judged = set(zip(evidence.query.tolist(), evidence.document.tolist(), strict=True))
        return not judged.isdisjoint(zip(chunks.query.tolist(), chunks.document.tolist(), strict=True))

    @cached_property
    def _chunks(self) -> Spans:
        """The rows in rank order. Documents without evidence have numbers, too: their chunks may overlap."""
        row = self.ranked.ranked.row
        retrieved = self.ranked.retrieved
        number = dict(self.evidence.document)
        texts = [None] * len(row) if retrieved.text is None else retrieved.text.take(pa.array(row)).to_pylist()
        spans = []
        for name, text in zip(retrieved.doc_id.take(pa.array(row)).to_pylist(), texts, strict=True):
            span = parse_chunk_id(name)
            if span is None:
                spans.append((-1, 0, len(text or "")))
            else:
                spans.append((number.setdefault(span[0], len(number)), *span[1:]))
        document, start, end = np.array(spans, np.int64).reshape(-1, 3).T
        return Spans(self.ranked.ranked.query, document, start, end)


def without_place(doc_ids: pa.StringArray) -> BoolArray:
    """A mask of the ids of results that name no span."""
    return np.array([parse_chunk_id(name) is None for name in doc_ids.to_pylist()], bool)
