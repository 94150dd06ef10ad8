"""The rankings of one source in order, each row with its judgement: where both files and answers arrive."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray, StringArray, offsets_of
from rankbeam.transforms.kernels.ranking.orders import order_by_score
from rankbeam.transforms.kernels.ranking.pools import Pool, find_judgements, keys
from rankbeam.transforms.kernels.ranking.rankings import Assessment, Ranked, assess
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.evaluation import Source
from rankbeam.transforms.records.metrics.dialects import Dialect
from rankbeam.transforms.records.rankings.retrieved import Retrieved


@dataclass(frozen=True)
class RankedSource:
    """The rankings of one source under one dialect.

    Attributes:
        retrieved: the rows.
        judgement: int64[m], by row: its row of the pool, or -1.
        ranked: the rows in order, not cut.
        by_score: the order is that of the scores.
        missing: bool[n], the source says nothing of the query.
    """

    retrieved: Retrieved
    judgement: IntArray
    ranked: Ranked
    by_score: bool
    missing: BoolArray

    @classmethod
    def of(
        cls,
        retrieved: Retrieved,
        query_ids: StringArray,
        pool: Pool,
        source: Source,
        dialect: Dialect,
        *,
        ties: bool,
    ) -> "RankedSource":
        """Order the rows of a source.

        Args:
            retrieved: its rows.
            query_ids: Arrow strings [n], of the judged queries.
            pool: the judgements.
            source: where the rows come from; what was read from a file is ordered by score, an answer stands as it is.
            dialect: the tool whose rules decide. If it orders answers by score, too, those without a score for each of
                their documents stand as they are.
            ties: whether to find the ranks that ties allow.
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
            matters = None if source.keep_rankings or source.top_k is not None else judgement >= 0
            order = order_by_score(retrieved.query, score, retrieved.doc_id, matters)
        by_score = source.path is not None or source.fusion is not None or dialect.by_score
        tied = score if by_score and ties else None
        ranked = Ranked.of(order, retrieved.query, retrieved.doc_id, pool.queries, key, tied)
        return cls(retrieved, judgement, ranked, by_score, missing)

    def first_repeat(self, top_k: int | None) -> int | None:
        """A row that repeats a document of its query within the first `top_k`; None where there is none."""
        repeated = self.ranked.upto(top_k).repeated
        return int(self.ranked.upto(top_k).row[np.argmax(repeated)]) if repeated.any() else None

    def assess(self, pool: Pool, top_k: int | None, *, chunks: bool) -> tuple[Assessment, Assessment | None]:
        """The rankings with one row a document, and, where asked for, with every chunk."""
        cut = self.ranked.upto(top_k)
        documents = assess(cut.collapsed(pool.queries), self.judgement, pool)
        return documents, assess(cut, self.judgement, pool) if chunks else None

    def first_ids(self, pool: Pool) -> tuple[str, str]:
        """The first id, in order, of a document that was retrieved, and of one that is judged."""
        return pc.min(self.retrieved.doc_id).as_py(), pc.min(pool.doc_id).as_py()

    def documents(self, pool: Pool, top_k: int | None) -> pa.ListArray:
        """The rankings as lists of `tables.DOCUMENT`."""
        ranked, retrieved = self.ranked.upto(top_k), self.retrieved
        row = pa.array(ranked.row)
        judged_by = self.judgement[ranked.row]
        place = pa.array(judged_by, mask=judged_by < 0)
        text = pa.nulls(len(row), pa.string()) if retrieved.text is None else retrieved.text.take(row)
        fields = [
            pa.array(ranked.rank, pa.int32()),
            retrieved.doc_id.take(row),
            pa.array(retrieved.score[ranked.row], from_pandas=True),  # NaN becomes null
            pa.array(pool.grade).take(place),
            text,
        ]
        structs = pa.StructArray.from_arrays(fields, fields=list(tables.DOCUMENT))
        return pa.ListArray.from_arrays(pa.array(offsets_of(ranked.query, pool.queries), pa.int32()), structs)


def _given_order_as_score(query: IntArray, score: FloatArray, queries: int) -> FloatArray:
    """Scores that keep the rows of a query in order, and untied, where any of them has none."""
    without = np.bincount(query, weights=np.isnan(score), minlength=queries) > 0
    return np.where(without[query], -np.arange(len(score), dtype=np.float64), score)
