"""Convert ordered rows into the inputs of metrics: ranks, collapsed duplicates, hits with their grades.

Rows are stored as columns: `query` holds, for each row, the position of its query among the n queries of a partition.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import (
    BoolArray,
    FloatArray,
    HashArray,
    IntArray,
    StringArray,
    position_in_group,
    runs_of,
)
from rankbeam.transforms.kernels.ranking.pools import Pool, Subtopics, keys

_ROWS_AT_ONCE = 1 << 13


@dataclass(frozen=True)
class RankedRows:
    """Retrieved rows in rank order."""

    row: IntArray  # int64[m], position among the input rows
    query: IntArray  # int64[m], position of the row's query, ascending
    rank: IntArray  # int64[m], 1, 2, 3, … inside each query
    repeated: BoolArray  # bool[m], the same document also has a better rank
    # int64[m], equal for rows of one query with equal scores, ascending; None unless ties were requested.
    tie: IntArray | None = None

    @classmethod
    def of(
        cls,
        order: IntArray,
        query: IntArray,
        doc_id: StringArray,
        queries: int,
        key: HashArray | None = None,
        score: FloatArray | None = None,
    ) -> "RankedRows":
        """Number ordered rows from 1 inside each query.

        Args:
            order: int64[≤ m], rows in rank order, query by query.
            query: int64[m], position of the query of each row (by row).
            doc_id: Arrow strings [m].
            queries: n.
            key: uint64[m], `keys` of these rows, if they are known.
            score: float64[m], to find ties; None if they are not needed.

        >>> RankedRows.of(np.array([1, 0]), np.array([0, 0]), pa.array(["a", "b"]), 1).rank.tolist()
        [1, 2]
        """
        key = keys(query, doc_id) if key is None else key
        query = query[order]
        repeated = np.zeros(len(order), bool)
        ordered = key[order]
        if has_repeats(ordered, query):
            repeated = repeats(query, doc_id.take(pa.array(order)), ordered)
        tie = None if score is None else runs_of(query, score[order])
        return cls(order, query, position_in_group(query, queries) + 1, repeated, tie)

    def upto(self, top_k: int | None) -> "RankedRows":
        """The first `top_k` ranks of every query; None keeps all."""
        return (
            self if top_k is None or not (self.rank > top_k).any() else self._select_rows(self.rank <= top_k, self.rank)
        )

    def deduplicated(self, queries: int) -> "RankedRows":
        """One row per document, its best-ranked one; ranks are renumbered."""
        if not self.repeated.any():
            return self
        is_first = ~self.repeated
        before = np.concatenate([[0], np.cumsum(np.bincount(self.query[is_first], minlength=queries))])
        rank: IntArray = np.cumsum(is_first, dtype=np.int64) - before[self.query]
        return self._select_rows(is_first, rank)

    def _select_rows(self, selected: BoolArray, rank: IntArray) -> "RankedRows":
        tie = None if self.tie is None else self.tie[selected]
        return RankedRows(self.row[selected], self.query[selected], rank[selected], self.repeated[selected], tie)

    def tied_ranks(self) -> tuple[IntArray, IntArray]:
        """int64[m], int64[m]: the first and the last rank of each row's tie group.

        >>> query, scores = np.array([0, 0, 0, 1]), np.array([9.0, 5.0, 5.0, 5.0])
        >>> ranked = RankedRows.of(np.arange(4), query, pa.array(["a", "b", "c", "a"]), 2, score=scores)
        >>> [ranks.tolist() for ranks in ranked.tied_ranks()]
        [[1, 2, 2, 1], [1, 3, 3, 1]]
        """
        assert self.tie is not None  # noqa: S101  only called where ties were requested
        begins = np.flatnonzero(np.diff(self.tie, prepend=-1))
        length = np.diff(np.append(begins, len(self.tie)))
        first = np.repeat(self.rank[begins], length)
        return first, first + np.repeat(length, length) - 1


@dataclass(frozen=True)
class Assessment:
    """n rankings joined with their judgements: all that a metric needs, and nothing more.

    A *hit* is a retrieved document that is in the query's pool. Hits are sorted by query, then by rank;
    the pool is sorted by query, then by grade, highest first.

    Attributes:
        retrieved: int64[n], documents retrieved per query.
        hit_query, hit_rank, hit_grade: int64[h], int64[h] (from 1), float64[h].
        hit_repeated: bool[h], the same document also has a better rank (only if every chunk counts).
        pool_query, pool_grade: int64[p], float64[p].
        hit_first, hit_last: int64[h], the first and the last rank that the hit could have if documents of equal score
            were ordered otherwise; both are its rank if nothing is tied. None unless ties were requested.
        hit_judgement: int64[h], the row of the pool of each hit; None without subtopics.
        subtopics: the subtopics of the pool; None if no metric needs them.
    """

    retrieved: IntArray
    hit_query: IntArray
    hit_rank: IntArray
    hit_grade: FloatArray
    hit_repeated: BoolArray
    pool_query: IntArray
    pool_grade: FloatArray
    hit_first: IntArray | None = None
    hit_last: IntArray | None = None
    hit_judgement: IntArray | None = None
    subtopics: Subtopics | None = None

    @property
    def queries(self) -> int:
        """The number n of queries."""
        return len(self.retrieved)

    def upto(self, top_k: int | None) -> "Assessment":
        """The same rankings cut after `top_k` documents; None keeps all."""
        if top_k is None:
            return self
        within = self.hit_rank <= top_k
        return self._with_hits(within, self.hit_query[within], self.hit_rank[within], np.minimum(self.retrieved, top_k))

    def judged_only(self) -> "Assessment":
        """The same rankings without the documents that have no judgement (trec_eval -J)."""
        judged = self.hit_grade >= 0
        query = self.hit_query[judged]
        rank = position_in_group(query, self.queries) + 1
        return self._with_hits(judged, query, rank, np.bincount(query, minlength=self.queries))

    def _with_hits(self, hits: BoolArray, query: IntArray, rank: IntArray, retrieved: IntArray) -> "Assessment":
        return replace(
            self,
            retrieved=retrieved,
            hit_query=query,
            hit_rank=rank,
            hit_grade=self.hit_grade[hits],
            hit_repeated=self.hit_repeated[hits],
            hit_first=None,
            hit_last=None,
            hit_judgement=None if self.hit_judgement is None else self.hit_judgement[hits],
        )


def repeats(query: IntArray, doc_id: StringArray, key: HashArray | None = None) -> BoolArray:
    """Return whether each row names a document that an earlier row of the same query also names.

    Args:
        query: int64[m], position of each row's query.
        doc_id: Arrow strings [m].
        key: uint64[m], `keys` of these rows, if they are known.

    Returns:
        bool[m].

    >>> repeats(np.array([0, 0, 1]), pa.array(["a", "a", "a"])).tolist()
    [False, True, False]
    """
    key = keys(query, doc_id) if key is None else key
    repeated = np.zeros(len(key), bool)
    if not has_repeats(key):
        return repeated
    by_key = np.argsort(key, kind="stable")
    ordered = key[by_key]
    repeated[by_key[1:]] = ordered[1:] == ordered[:-1]
    # Equal hashes nearly always mean equal ids. Only these few rows are compared as strings.
    candidates = np.flatnonzero(np.isin(key, key[repeated]))
    seen: set[tuple[int, str]] = set()
    ids = doc_id.take(pa.array(candidates)).to_pylist()
    for row, name in zip(candidates.tolist(), ids, strict=True):
        pair = (int(query[row]), name)
        repeated[row] = pair in seen
        seen.add(pair)
    return repeated


def has_repeats(key: HashArray, query: IntArray | None = None) -> bool:
    """Return whether two rows may name the same document for the same query; never False if two rows do.

    Args:
        key: uint64[m], `keys` of the rows.
        query: int64[m], ascending, position of each row's query; without it, any two equal keys count.

    >>> has_repeats(np.array([3, 1, 3], np.uint64)), has_repeats(np.array([3, 1], np.uint64), np.array([0, 0]))
    (True, False)
    """
    if query is None or len(query) == 0:
        return _has_duplicates(key)
    # A few whole queries at a time, so that sorting stays in the processor's cache: twice as fast.
    starts = np.unique(np.searchsorted(query, query[::_ROWS_AT_ONCE]))
    return any(map(_has_duplicates, np.split(key, starts[1:])))


def _has_duplicates(key: HashArray) -> bool:
    # Sorting is several times as fast as argsort, and sorting 32 bits twice as fast again. Most keys have no duplicate.
    halves = np.sort((key >> np.uint64(32)).astype(np.uint32))
    if not (halves[1:] == halves[:-1]).any():
        return False
    ordered = np.sort(key)
    return bool((ordered[1:] == ordered[:-1]).any())


def assess(ranked: RankedRows, judgement: IntArray, pool: Pool) -> Assessment:
    """Join rankings with their judgements.

    Args:
        ranked: the rows in rank order.
        judgement: int64[m], the row of the pool for each input row, or -1 (`find_judgements`).
        pool: the judgements.

    Returns:
        The assessment of the pool's n queries; a query without rows has 0 retrieved documents.
    """
    judged_by = judgement[ranked.row]
    hit = np.flatnonzero(judged_by >= 0)
    first, last = (None, None) if ranked.tie is None else (rank[hit] for rank in ranked.tied_ranks())
    return Assessment(
        retrieved=np.bincount(ranked.query, minlength=pool.queries),
        hit_query=ranked.query[hit],
        hit_rank=ranked.rank[hit],
        hit_grade=pool.grade[judged_by[hit]],
        hit_repeated=ranked.repeated[hit],
        pool_query=pool.query[pool.by_grade],
        pool_grade=pool.grade[pool.by_grade],
        hit_first=first,
        hit_last=last,
        hit_judgement=None if pool.subtopics is None else judged_by[hit],
        subtopics=pool.subtopics,
    )


def with_assumed_grades(a: Assessment, grade: float, cutoff: int | None = None) -> Assessment:
    """Give a grade to every unjudged document among the first ones, which also enters the pool.

    These are bounds on the effect of missing judgements. Documents without a judgement count as not relevant. If all of
    them had the highest grade instead, the value would be different. For precision, recall, reciprocal rank, success
    and RBP no assumption leads beyond these two values; Moffat and Zobel call their difference the residual
    ("Rank-biased precision for measurement of retrieval effectiveness", TOIS 2008). For nDCG and AP, whose ideal
    changes with the assumption, mixtures of both can lie slightly outside.

    Args:
        a: n rankings with distinct documents; a grade below 0 counts as unjudged.
        grade: the assumed grade.
        cutoff: number of first documents; None for all.

    >>> from rankbeam.transforms.kernels.ranking import hits, metrics
    >>> assumed = with_assumed_grades(hits.EXAMPLE, 2.0, cutoff=5)
    >>> metrics.precision(hits.EXAMPLE, cutoff=5).tolist(), metrics.precision(assumed, cutoff=5).tolist()
    ([0.4], [0.8])
    """
    depth = a.retrieved if cutoff is None else np.minimum(a.retrieved, cutoff)
    query = np.repeat(np.arange(a.queries), depth)
    rank = position_in_group(query, a.queries) + 1
    width = int(max(a.retrieved.max(initial=0), a.hit_rank.max(initial=0))) + 1
    judged = a.hit_grade >= 0
    places = a.hit_query * width + a.hit_rank
    open_ones = ~np.isin(query * width + rank, places[judged])
    query, rank = query[open_ones], rank[open_ones]
    stays = judged | ~np.isin(places, query * width + rank)
    hit_query, hit_rank = np.concatenate([a.hit_query[stays], query]), np.concatenate([a.hit_rank[stays], rank])
    hit_grade = np.concatenate([a.hit_grade[stays], np.full(len(query), grade)])
    pool_query = np.concatenate([a.pool_query, query])
    pool_grade = np.concatenate([a.pool_grade, np.full(len(query), grade)])
    order, pool_order = np.lexsort((hit_rank, hit_query)), np.lexsort((-pool_grade, pool_query))
    return replace(
        a,
        hit_query=hit_query[order],
        hit_rank=hit_rank[order],
        hit_grade=hit_grade[order],
        hit_repeated=np.concatenate([a.hit_repeated[stays], np.zeros(len(query), bool)])[order],
        pool_query=pool_query[pool_order],
        pool_grade=pool_grade[pool_order],
        hit_first=None,
        hit_last=None,
    )
