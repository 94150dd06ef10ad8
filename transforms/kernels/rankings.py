"""From retrieved rows to what a metric needs: order them, collapse duplicates, join with judgements.

Rows are columns: `query` holds, per row, the position of its query among the n queries of a partition.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.kernels import hashing
from transforms.kernels.arrays import (
    BoolArray,
    FloatArray,
    HashArray,
    IntArray,
    StringArray,
    position_in_group,
)


@dataclass(frozen=True)
class Pool:
    """The judged documents of n queries, sorted by query.

    Attributes:
        queries: n.
        query: int64[p], position of the query of each judgement, ascending.
        doc_id: Arrow strings [p]; no document stands twice in one query.
        grade: float64[p]; below 0 means "in the pool, not judged" (as in infAP's sampled pools).
    """

    queries: int
    query: IntArray
    doc_id: StringArray
    grade: FloatArray


@dataclass(frozen=True)
class Ranked:
    """Retrieved rows in rank order.

    Attributes:
        row: int64[m], which of the given rows stands here.
        query: int64[m], position of its query, ascending.
        rank: int64[m], 1, 2, 3, … inside each query.
        repeated: bool[m], the document already stands at a better rank.
    """

    row: IntArray
    query: IntArray
    rank: IntArray
    repeated: BoolArray

    @classmethod
    def of(cls, order: IntArray, query: IntArray, doc_id: StringArray, queries: int) -> "Ranked":
        """Number ordered rows from 1 inside each query.

        Args:
            order: int64[≤ m], rows in rank order, query by query.
            query: int64[m], position of the query of each row (by row).
            doc_id: Arrow strings [m].
            queries: n.

        >>> Ranked.of(np.array([1, 0]), np.array([0, 0]), pa.array(["a", "b"]), 1).rank.tolist()
        [1, 2]
        """
        query = query[order]
        repeated = repeats(query, doc_id.take(pa.array(order)))
        return cls(order, query, position_in_group(query, queries) + 1, repeated)

    def upto(self, top_k: int | None) -> "Ranked":
        """The first `top_k` ranks of every query; None keeps all."""
        if top_k is None:
            return self
        kept = self.rank <= top_k
        return Ranked(self.row[kept], self.query[kept], self.rank[kept], self.repeated[kept])

    def collapsed(self, queries: int) -> "Ranked":
        """The best-ranked row of every document stands for it; ranks are numbered anew."""
        kept = ~self.repeated
        query = self.query[kept]
        rank = position_in_group(query, queries) + 1
        return Ranked(self.row[kept], query, rank, np.zeros(len(query), bool))


@dataclass(frozen=True)
class Assessment:
    """n rankings seen through their judgements: all that any metric needs, and nothing more.

    A *hit* is a retrieved document that is in the query's pool. Rows of hits are sorted by query, then
    rank; rows of the pool by query, then grade, highest first.

    Attributes:
        retrieved: int64[n], documents retrieved per query.
        hit_query, hit_rank, hit_grade: int64[h], int64[h] (from 1), float64[h].
        hit_repeated: bool[h], the document already stood at a better rank (only where chunks count each).
        pool_query, pool_grade: int64[p], float64[p].
        hit_first, hit_last: int64[h], the first and the last rank that the hit could have if documents of equal score
            were ordered otherwise; both are its rank where nothing is tied. None where nobody asked.
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

    @property
    def queries(self) -> int:
        """The number n of queries."""
        return len(self.retrieved)

    def judged_only(self) -> "Assessment":
        """The same rankings after every document without a judgement has been taken out (trec_eval -J)."""
        judged = self.hit_grade >= 0
        query = self.hit_query[judged]
        return Assessment(
            retrieved=np.bincount(query, minlength=self.queries),
            hit_query=query,
            hit_rank=position_in_group(query, self.queries) + 1,
            hit_grade=self.hit_grade[judged],
            hit_repeated=self.hit_repeated[judged],
            pool_query=self.pool_query,
            pool_grade=self.pool_grade,
        )


def order_by_score(query: IntArray, score: FloatArray, doc_id: StringArray) -> IntArray:
    """The order of trec_eval v10: score descending, then document id descending, byte by byte.

    Args:
        query: int64[m], position of each row's query.
        score: float64[m], finite.
        doc_id: Arrow strings [m].

    Returns:
        int64[m]: the rows in order, query by query.

    >>> order_by_score(np.array([0, 0, 0]), np.array([1.0, 2.0, 1.0]), pa.array(["a", "b", "c"])).tolist()
    [1, 2, 0]
    """
    order = np.argsort(query, kind="stable")
    query, score = query[order], score[order]
    if ((score[1:] > score[:-1]) & (query[1:] == query[:-1])).any():  # most runs come best first
        by_score = np.lexsort((-score, query))
        order, query, score = order[by_score], query[by_score], score[by_score]
    same = (query[1:] == query[:-1]) & (score[1:] == score[:-1])
    if not same.any():
        return order
    # Comparing ids is slow, so only rows inside a tie are compared.
    tied = np.zeros(len(order), bool)
    tied[1:] |= same
    tied[:-1] |= same
    place = np.flatnonzero(tied)
    group = np.cumsum(np.concatenate([[True], ~same]))[place]
    ties = pa.table({"group": group, "doc_id": doc_id.take(pa.array(order[place]))})
    by = pc.sort_indices(ties, sort_keys=[("group", "ascending"), ("doc_id", "descending")])
    order[place] = order[place][by.to_numpy()]
    return order


def order_by_rank(query: IntArray, rank: IntArray) -> IntArray:
    """The order a service gave: query by query, by rank.

    >>> order_by_rank(np.array([1, 0, 0]), np.array([1, 2, 1])).tolist()
    [2, 1, 0]
    """
    return np.lexsort((rank, query))


def repeats(query: IntArray, doc_id: StringArray) -> BoolArray:
    """Which rows name a document that an earlier row of the same query already named.

    Args:
        query: int64[m], position of each row's query.
        doc_id: Arrow strings [m].

    Returns:
        bool[m].

    >>> repeats(np.array([0, 0, 1]), pa.array(["a", "a", "a"])).tolist()
    [False, True, False]
    """
    key = _keys(query, doc_id)
    again = np.zeros(len(key), bool)
    ordered = np.sort(key)  # several times as fast as argsort, and mostly nothing is repeated
    if not (ordered[1:] == ordered[:-1]).any():
        return again
    by_key = np.argsort(key, kind="stable")
    ordered = key[by_key]
    again[by_key[1:]] = ordered[1:] == ordered[:-1]
    # Equal hashes are nearly always equal ids. Only these few rows are compared as strings.
    suspects = np.flatnonzero(np.isin(key, key[again]))
    seen: set[tuple[int, str]] = set()
    ids = doc_id.take(pa.array(suspects)).to_pylist()
    for row, name in zip(suspects.tolist(), ids, strict=True):
        pair = (int(query[row]), name)
        again[row] = pair in seen
        seen.add(pair)
    return again


def find_judgements(query: IntArray, doc_id: StringArray, pool: Pool) -> IntArray:
    """The row of the pool that judges each retrieved row, or -1.

    Args:
        query: int64[m], position of each row's query.
        doc_id: Arrow strings [m].
        pool: the judgements.

    Returns:
        int64[m].

    >>> pool = Pool(1, np.array([0]), pa.array(["d7"]), np.array([2.0]))
    >>> find_judgements(np.array([0, 0]), pa.array(["d3", "d7"]), pool).tolist()
    [-1, 0]
    """
    found = np.full(len(query), -1)
    if len(pool.query) == 0 or len(query) == 0:
        return found
    pool_key = _keys(pool.query, pool.doc_id)
    by_key = np.argsort(pool_key, kind="stable")
    pool_key = pool_key[by_key]
    key = _keys(query, doc_id)
    place = np.minimum(np.searchsorted(pool_key, key), len(pool_key) - 1)
    row = np.flatnonzero(pool_key[place] == key)
    judgement = by_key[place[row]]
    equal = pc.equal(doc_id.take(pa.array(row)), pool.doc_id.take(pa.array(judgement)))
    equal = equal.to_numpy(zero_copy_only=False) & (query[row] == pool.query[judgement])
    found[row[equal]] = judgement[equal]
    for unlucky in row[~equal].tolist():  # the hash of another judged document: about 1 in 10^13
        same = np.flatnonzero(pool.query == query[unlucky])
        ids = pool.doc_id.take(pa.array(same)).to_pylist()
        if doc_id[unlucky].as_py() in ids:
            found[unlucky] = same[ids.index(doc_id[unlucky].as_py())]
    return found


def assess(ranked: Ranked, judgement: IntArray, pool: Pool) -> Assessment:
    """Look at rankings through their judgements.

    Args:
        ranked: the rows in rank order.
        judgement: int64[m], by given row: its row of the pool, or -1 (`find_judgements`).
        pool: the judgements.

    Returns:
        The assessment of the pool's n queries; a query without rows has retrieved 0 documents.
    """
    judged_by = judgement[ranked.row]
    hit = judged_by >= 0
    by_grade = np.lexsort((-pool.grade, pool.query))
    return Assessment(
        retrieved=np.bincount(ranked.query, minlength=pool.queries),
        hit_query=ranked.query[hit],
        hit_rank=ranked.rank[hit],
        hit_grade=pool.grade[judged_by[hit]],
        hit_repeated=ranked.repeated[hit],
        pool_query=pool.query[by_grade],
        pool_grade=pool.grade[by_grade],
    )


def _keys(query: IntArray, doc_id: StringArray) -> HashArray:
    return hashing.combine(query.astype(np.uint64), hashing.hash_strings(doc_id))
