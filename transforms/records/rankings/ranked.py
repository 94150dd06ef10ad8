"""The rankings of one source, from a file or from calls: rows in rank order, joined with their judgements.

Several configurations may search one source: each cuts its rows in its own way. If a judge fills holes, its grades
are added to the judgements of people.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray, StringArray, offsets_of
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.ranking.orders import order_by_score
from rankbeam.transforms.kernels.ranking.pools import Pool, find_judgements, keys
from rankbeam.transforms.kernels.ranking.rankings import Assessment, RankedRows, assess
from rankbeam.transforms.records import holes, tables
from rankbeam.transforms.records.holes import HUMAN, LLM
from rankbeam.transforms.records.metrics.dialects import RANKBEAM, Dialect
from rankbeam.transforms.records.metrics.evaluation import Evaluation, Source
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.rankings.retrieved import RetrievedRows

_SOURCES = pa.array([HUMAN, LLM])


@dataclass(frozen=True)
class RankedSource:
    """The rankings of one source under one dialect."""

    retrieved: RetrievedRows  # the rows
    pool: Pool  # the judgements through which they are seen
    by_judge: BoolArray | None  # bool, the judgements of the pool that are a judge's; None if it filled no holes
    judgement: IntArray  # int64[m], the row of the pool for each row, or -1
    ranked: RankedRows  # the rows in order, not cut
    by_score: bool  # whether the scores decide the order
    missing: BoolArray  # bool[n], the source has no row for the query

    @classmethod
    def of(
        cls,
        retrieved: RetrievedRows,
        query_ids: StringArray,
        pool: Pool,
        source: Source,
        dialect: Dialect,
        *,
        ties: bool,
        spans: bool = False,
        by_judge: BoolArray | None = None,
    ) -> "RankedSource":
        """Order the rows of a source.

        Args:
            retrieved: its rows.
            query_ids: Arrow strings [n], of the judged queries.
            pool: the judgements.
            source: source of the rows. Rows of a file are ordered by score; rows of an answer keep their order.
            dialect: the tool whose rules apply. If it also orders answers by score, an answer in which a document has
                no score still keeps the service's order.
            ties: whether to compute the ranks that ties allow.
            spans: evidence spans are the judgements, so every chunk matters, and none has the id of a judgement.
            by_judge: as the attribute.
        """
        missing = np.bincount(retrieved.query, minlength=pool.queries) == 0
        if dialect.drops_self:
            retrieved = retrieved.without_self(query_ids)
        key = keys(retrieved.query, retrieved.doc_id)
        judgement = find_judgements(retrieved.query, retrieved.doc_id, pool, key)
        score = -retrieved.score if source.lower_is_better else retrieved.score
        if dialect.single_precision:
            score = score.astype(np.float32).astype(np.float64)
        if dialect.by_score and retrieved.first_without_score() is not None:
            score = _given_order_as_score(retrieved.query, score, pool.queries)
        order = np.arange(len(score))
        if source.path is not None or dialect.by_score:
            needs_all = spans or source.keep_rankings or source.top_k is not None
            matters = None if needs_all else judgement >= 0
            order = order_by_score(retrieved.query, score, retrieved.doc_id, matters)
        by_score = source.path is not None or source.fusion is not None or dialect.by_score
        tied = score if by_score and ties else None
        ranked = RankedRows.of(order, retrieved.query, retrieved.doc_id, pool.queries, key, tied)
        return cls(retrieved, pool, by_judge, judgement, ranked, by_score, missing)

    def first_repeat(self, top_k: int | None) -> int | None:
        """A row within the first `top_k` whose document has an earlier row for the same query, or None."""
        repeated = self.ranked.upto(top_k).repeated
        return int(self.ranked.upto(top_k).row[np.argmax(repeated)]) if repeated.any() else None

    def assess(self, top_k: int | None, *, chunks: bool) -> "Assessed":
        cut = self.ranked.upto(top_k)
        documents = assess(cut.deduplicated(self.pool.queries), self.judgement, self.pool)
        return documents, assess(cut, self.judgement, self.pool) if chunks else None

    def first_ids(self) -> tuple[str, str]:
        return pc.min(self.retrieved.doc_id).as_py(), pc.min(self.pool.doc_id).as_py()

    def documents(self, top_k: int | None, row_grade: FloatArray | None = None) -> pa.ListArray:
        """Lists of `tables.DOCUMENT`; `row_grade` is float64[m], NaN for none, instead of the judgements' grades."""
        ranked, retrieved = self.ranked.upto(top_k), self.retrieved
        row = pa.array(ranked.row)
        judgement = self.judgement[ranked.row]
        pool_row = pa.array(judgement, mask=judgement < 0)
        text = pa.nulls(len(row), pa.string()) if retrieved.text is None else retrieved.text.take(row)
        grade = pa.array(self.pool.grade).take(pool_row)
        if row_grade is not None:
            grade = pa.array(row_grade[ranked.row], from_pandas=True)
        fields = [
            pa.array(ranked.rank, pa.int32()),
            retrieved.doc_id.take(row),
            pa.array(retrieved.score[ranked.row], from_pandas=True),  # NaN becomes null
            grade,
            text,
            pa.nulls(len(row), pa.string())
            if self.by_judge is None
            else _SOURCES.take(pa.array(self.by_judge * 1).take(pool_row)),
        ]
        structs = pa.StructArray.from_arrays(fields, fields=list(tables.DOCUMENT))
        return pa.ListArray.from_arrays(pa.array(offsets_of(ranked.query, self.pool.queries), pa.int32()), structs)


def _given_order_as_score(query: IntArray, score: FloatArray, queries: int) -> FloatArray:
    """The scores; for a query with a missing score, new ones that keep its rows in their order without ties."""
    without = np.bincount(query, weights=np.isnan(score), minlength=queries) > 0
    return np.where(without[query], -np.arange(len(score), dtype=np.float64), score)


class SharedRanking(NamedTuple):
    """One ranking of a source's rows, and the configurations that share it."""

    dialect: Dialect
    distance: float | None
    top_k: int | None
    configurations: tuple[int, ...]


def cuts_of(evaluation: Evaluation, number: int) -> list[SharedRanking]:
    """The different rankings of a source; a tool that orders answers by score orders the first `top_k` only."""
    source = evaluation.sources[number]
    is_given = source.path is None and source.fusion is None
    positions = grouped(
        ((config.dialect, config.distance, config.top_k if is_given and config.dialect.by_score else None), position)
        for position, config in enumerate(evaluation.configurations)
        if config.source == number
    )
    if not positions and source.refuse_repeats:
        positions[RANKBEAM, None, None] = []  # only part of a fusion: ranked to check it for repeated documents
    return [SharedRanking(*cut, tuple(configurations)) for cut, configurations in positions.items()]


@dataclass(frozen=True)
class FilledPool:
    """Judgements of people and judge."""

    pool: Pool  # judgements of both, on the scale of people
    by_judge: BoolArray  # bool, the judgements of the pool that are the judge's
    audited: pa.RecordBatch


Assessed = tuple[Assessment, Assessment | None]
"""Rankings with one row per document, and, if a metric needs it, with one row per chunk."""


def by_judgements(
    metrics: Sequence[Metric],
    assessed: Sequence[Assessed],
    compute: Callable[[Sequence[Metric], Assessment, Assessment | None], FloatArray],
) -> FloatArray:
    """Values of m metrics along the last axis, each by the judgements that it counts: people's, or the filled ones."""
    values = compute(metrics, *assessed[0])
    places = [place for place, metric in enumerate(metrics) if metric.holes]
    if places and len(assessed) > 1:
        values[..., places] = compute([metrics[place] for place in places], *assessed[1])
    return values


def fill_pool(pool: Pool, query_ids: StringArray, grades: Sequence[pa.RecordBatch], scale: Sequence[int]) -> FilledPool:
    """Fill the holes of a pool of n queries: documents without a grade, or with one below 0, get the judge's."""
    table = pa.Table.from_batches(grades, holes.GRADES).combine_chunks()
    doc_id = pa.concat_arrays([pa.array([], pa.string()), *table["doc_id"].chunks])
    query = np.asarray(pc.index_in(table["query_id"], value_set=query_ids)).astype(np.int64)
    worth = np.array(scale, np.int64)[table["grade"].to_numpy()]
    judgement = find_judgements(query, doc_id, pool)
    human = np.append(pool.grade, -1.0)[judgement]
    is_hole = human < 0
    stays = np.ones(len(pool.grade), bool)
    stays[judgement[is_hole & (judgement >= 0)]] = False
    queries = np.concatenate([pool.query[stays], query[is_hole]])
    order = np.argsort(queries, kind="stable")
    rows = pa.array(order)
    return FilledPool(
        Pool(
            pool.queries,
            queries[order],
            pa.concat_arrays([pool.doc_id.filter(pa.array(stays)), doc_id.filter(pa.array(is_hole))]).take(rows),
            np.concatenate([pool.grade[stays], worth[is_hole].astype(np.float64)])[order],
        ),
        np.repeat([False, True], [int(stays.sum()), int(is_hole.sum())])[order],
        pa.RecordBatch.from_arrays(
            [query_ids.take(pa.array(query)), doc_id, pa.array(human, mask=is_hole), pa.array(worth)],
            schema=holes.AUDITED,
        ),
    )
