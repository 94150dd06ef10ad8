"""Judgements whose holes are filled with a judge's grades; people's grades stay, and audit the judge."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, StringArray
from rankbeam.transforms.kernels.ranking.pools import Pool, find_judgements
from rankbeam.transforms.kernels.ranking.rankings import Assessment
from rankbeam.transforms.records import holes
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.rankings.ranked import RankedSource


@dataclass(frozen=True)
class FilledPool:
    """Judgements of people and judge."""

    pool: Pool  # both, on the scale of people
    by_judge: BoolArray  # bool, the judgements of the pool that are the judge's
    audited: pa.RecordBatch


Assessed = tuple[Assessment, Assessment | None]
"""Rankings with one row per document, and, where a metric needs it, with one row per chunk."""


@dataclass(frozen=True)
class SeenRankings:
    """The rankings of one source seen through people's judgements, and, where holes are filled, through both."""

    pool: Pool
    ranked: RankedSource
    filled: FilledPool | None = None
    with_holes: RankedSource | None = None

    def assess(self, top_k: int | None, *, chunks: bool) -> list[Assessed]:
        """The rankings joined with people's judgements; then with those of people and judge, if there are any."""
        assessed = [self.ranked.assess(self.pool, top_k, chunks=chunks)]
        if self.filled is not None and self.with_holes is not None:
            assessed.append(self.with_holes.assess(self.filled.pool, top_k, chunks=chunks))
        return assessed

    def documents(self, top_k: int | None, row_grade: FloatArray | None) -> pa.ListArray:
        """The rankings as lists of `tables.DOCUMENT`; grades of the judge are marked as such."""
        if self.filled is None or self.with_holes is None:
            return self.ranked.documents(self.pool, top_k, row_grade)
        return self.with_holes.documents(self.filled.pool, top_k, by_judge=self.filled.by_judge)


def by_judgements(
    metrics: Sequence[Metric],
    assessed: Sequence[Assessed],
    compute: Callable[[Sequence[Metric], Assessment, Assessment | None], FloatArray],
) -> FloatArray:
    """Values of metrics along the last axis, each by the judgements that it counts.

    Args:
        metrics: m metrics.
        assessed: rankings joined with people's judgements, and then with filled ones.
        compute: function that returns an array whose last axis is that of the metrics.
    """
    values = compute(metrics, *assessed[0])
    places = [place for place, metric in enumerate(metrics) if metric.holes]
    if places and len(assessed) > 1:
        values[..., places] = compute([metrics[place] for place in places], *assessed[1])
    return values


def filled(pool: Pool, query_ids: StringArray, grades: Sequence[pa.RecordBatch], scale: Sequence[int]) -> FilledPool:
    """Fill the holes of a pool: documents without a grade, or with one below 0, count by the judge's grade.

    Args:
        pool: judgements of people for n queries.
        query_ids: Arrow strings [n].
        grades: batches of `holes.GRADES`, of these queries.
        scale: for each grade of the judge, the grade on the scale of people.
    """
    table = pa.Table.from_batches(grades, holes.GRADES).combine_chunks()
    doc_id = pa.concat_arrays([pa.array([], pa.string()), *table["doc_id"].chunks])
    query = np.asarray(pc.index_in(table["query_id"], value_set=query_ids)).astype(np.int64)
    worth = np.array(scale, np.int64)[table["grade"].to_numpy()]
    judged_by = find_judgements(query, doc_id, pool)
    human = np.append(pool.grade, -1.0)[judged_by]
    is_hole = human < 0
    stays = np.ones(len(pool.grade), bool)
    stays[judged_by[is_hole & (judged_by >= 0)]] = False
    queries = np.concatenate([pool.query[stays], query[is_hole]])
    order = np.argsort(queries, kind="stable")
    in_order = pa.array(order)
    return FilledPool(
        Pool(
            pool.queries,
            queries[order],
            pa.concat_arrays([pool.doc_id.filter(pa.array(stays)), doc_id.filter(pa.array(is_hole))]).take(in_order),
            np.concatenate([pool.grade[stays], worth[is_hole].astype(np.float64)])[order],
        ),
        np.repeat([False, True], [int(stays.sum()), int(is_hole.sum())])[order],
        pa.RecordBatch.from_arrays(
            [query_ids.take(pa.array(query)), doc_id, pa.array(human, mask=is_hole), pa.array(worth)],
            schema=holes.AUDITED,
        ),
    )
