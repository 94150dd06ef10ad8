"""From retrieved rows to what a metric needs: order them, collapse duplicates, join with judgements.

Rows are columns: `query` holds, per row, the position of its query among the n queries of a partition.
"""

from dataclasses import dataclass, replace
from functools import cached_property

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
    offsets_of,
    position_in_group,
    stable_order,
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

    @cached_property
    def by_grade(self) -> IntArray:
        """int64[p]: the judgements by query, then by grade, highest first."""
        order: IntArray = np.lexsort((-self.grade, self.query))
        return order

    @cached_property
    def by_key(self) -> IntArray:
        """int64[p]: the judgements in the order of their keys."""
        return np.argsort(self._keys)

    @cached_property
    def key(self) -> HashArray:
        """uint64[p + 1]: the keys in ascending order, and the highest number there is."""
        return np.append(self._keys[self.by_key], np.uint64(0xFFFFFFFFFFFFFFFF))

    @cached_property
    def _keys(self) -> HashArray:
        return keys(self.query, self.doc_id)

    def matches(self, key: HashArray) -> tuple[IntArray, IntArray]:
        """The rows, by their keys, that have the key of a judgement, and that judgement.

        A table of the keys' beginnings, small enough for the processor's cache, sorts out nearly all others (Bloom,
        CACM 13(7), 1970); another says where judgements of a beginning start, so that few steps find the key.
        """
        row = np.flatnonzero(self._seen[key >> self._seen_shift])
        wanted = key[row]
        place = self._first[wanted >> self._first_shift]
        ahead = np.arange(len(row))
        while len(ahead):
            ahead = ahead[self.key[place[ahead]] < wanted[ahead]]
            place[ahead] += 1
        found = (self.key[place] == wanted) & (place < len(self.query))
        return row[found], self.by_key[place[found]]

    @cached_property
    def _seen_shift(self) -> np.uint64:
        return np.uint64(64 - min(22, max(8, (8 * len(self.query)).bit_length())))

    @cached_property
    def _seen(self) -> BoolArray:
        """Which beginnings of a key the judgements have."""
        seen = np.zeros(1 << (64 - int(self._seen_shift)), bool)
        seen[self._keys >> self._seen_shift] = True
        return seen

    @cached_property
    def _first_shift(self) -> np.uint64:
        return np.uint64(64 - max(8, len(self.query).bit_length()))

    @cached_property
    def _first(self) -> IntArray:
        """The first judgement, in the order of keys, at or after each beginning of a key."""
        beginnings = (self.key[:-1] >> self._first_shift).astype(np.int64)
        return offsets_of(beginnings, 1 << (64 - int(self._first_shift)))


@dataclass(frozen=True)
class Ranked:
    """Retrieved rows in rank order.

    Attributes:
        row: int64[m], which of the given rows stands here.
        query: int64[m], position of its query, ascending.
        rank: int64[m], 1, 2, 3, … inside each query.
        repeated: bool[m], the document already stands at a better rank.
        tie: int64[m], equal for rows of one query with equal scores, ascending; None where nobody asked.
    """

    row: IntArray
    query: IntArray
    rank: IntArray
    repeated: BoolArray
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
    ) -> "Ranked":
        """Number ordered rows from 1 inside each query.

        Args:
            order: int64[≤ m], rows in rank order, query by query.
            query: int64[m], position of the query of each row (by row).
            doc_id: Arrow strings [m].
            queries: n.
            key: uint64[m], `keys` of these rows, where they are known.
            score: float64[m], where ties are asked for.

        >>> Ranked.of(np.array([1, 0]), np.array([0, 0]), pa.array(["a", "b"]), 1).rank.tolist()
        [1, 2]
        """
        key = keys(query, doc_id) if key is None else key
        query = query[order]
        repeated = np.zeros(len(order), bool)
        if has_repeats(key):
            repeated = repeats(query, doc_id.take(pa.array(order)), key[order])
        tie = None if score is None else tie_groups(query, score[order])
        return cls(order, query, position_in_group(query, queries) + 1, repeated, tie)

    def upto(self, top_k: int | None) -> "Ranked":
        """The first `top_k` ranks of every query; None keeps all."""
        return self if top_k is None or not (self.rank > top_k).any() else self._only(self.rank <= top_k, self.rank)

    def collapsed(self, queries: int) -> "Ranked":
        """The best-ranked row of every document stands for it; ranks are numbered anew."""
        if not self.repeated.any():
            return self
        kept = ~self.repeated
        before = np.concatenate([[0], np.cumsum(np.bincount(self.query[kept], minlength=queries))])
        rank: IntArray = np.cumsum(kept, dtype=np.int64) - before[self.query]
        return self._only(kept, rank)

    def _only(self, kept: BoolArray, rank: IntArray) -> "Ranked":
        tie = None if self.tie is None else self.tie[kept]
        return Ranked(self.row[kept], self.query[kept], rank[kept], self.repeated[kept], tie)

    def tied_ranks(self) -> tuple[IntArray, IntArray]:
        """int64[m], int64[m]: the first and the last rank of each row's tie group."""
        assert self.tie is not None  # noqa: S101  only asked where ties were
        begins = np.flatnonzero(np.diff(self.tie, prepend=-1))
        length = np.diff(np.append(begins, len(self.tie)))
        first = np.repeat(self.rank[begins], length)
        return first, first + np.repeat(length, length) - 1


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

    def upto(self, top_k: int | None) -> "Assessment":
        """The same rankings cut after `top_k` documents; None keeps all."""
        if top_k is None:
            return self
        kept = self.hit_rank <= top_k
        return replace(
            self,
            retrieved=np.minimum(self.retrieved, top_k),
            hit_query=self.hit_query[kept],
            hit_rank=self.hit_rank[kept],
            hit_grade=self.hit_grade[kept],
            hit_repeated=self.hit_repeated[kept],
            hit_first=None,
            hit_last=None,
        )

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


def order_by_score(
    query: IntArray, score: FloatArray, doc_id: StringArray, matters: BoolArray | None = None
) -> IntArray:
    """The order of trec_eval v10: score descending, then document id descending, byte by byte.

    Args:
        query: int64[m], position of each row's query.
        score: float64[m], finite.
        doc_id: Arrow strings [m].
        matters: bool[m], rows whose rank somebody will look at; documents tied with none of them stand in any order.

    Returns:
        int64[m]: the rows in order, query by query.

    >>> order_by_score(np.array([0, 0, 0]), np.array([1.0, 2.0, 1.0]), pa.array(["a", "b", "c"])).tolist()
    [1, 2, 0]
    """
    queries = int(query.max(initial=-1)) + 1
    order = stable_order(query, queries)
    if (query[1:] < query[:-1]).any():
        query, score = query[order], score[order]
    if ((score[1:] > score[:-1]) & (query[1:] == query[:-1])).any():  # most runs come best first
        by_score = np.argsort(-score)
        by_score = by_score[stable_order(query[by_score], queries)]
        order, query, score = order[by_score], query[by_score], score[by_score]
    group = tie_groups(query, score)
    place = _inside_ties(group, None if matters is None else matters[order])
    if len(place):  # comparing ids is slow: only where it decides
        order[place] = order[place][order_by_id(group[place], doc_id.take(pa.array(order[place])), descending=True)]
    return order


def tie_groups(query: IntArray, score: FloatArray) -> IntArray:
    """Number the groups of neighbours with the same query and the same score, from 0.

    >>> tie_groups(np.array([0, 0, 0, 1]), np.array([2.0, 1.0, 1.0, 1.0])).tolist()
    [0, 1, 1, 2]
    """
    begins = np.ones(len(query), bool)
    begins[1:] = (query[1:] != query[:-1]) | (score[1:] != score[:-1])
    return np.cumsum(begins) - 1


def _inside_ties(group: IntArray, matters: BoolArray | None) -> IntArray:
    """The rows of groups that have several rows, and among them one that matters; the rows are sorted by group."""
    tied = np.zeros(len(group), bool)
    same = group[1:] == group[:-1]
    tied[1:] |= same
    tied[:-1] |= same
    place = np.flatnonzero(tied)
    if matters is None or len(place) == 0:
        return place
    wanted = np.zeros(int(group[-1]) + 1, bool)
    wanted[group[matters]] = True
    return place[wanted[group[place]]]


def order_by_id(group: IntArray, doc_id: StringArray, *, descending: bool = False) -> IntArray:
    """Rows in the order of their ids, byte by byte, inside each group.

    Args:
        group: int64[m], from 0.
        doc_id: Arrow strings [m].
        descending: the last id of a group first.

    Returns:
        int64[m]: the rows in order, group by group.

    >>> order_by_id(np.array([1, 0, 0]), pa.array(["a", "d10", "d1"])).tolist()
    [2, 1, 0]
    """
    words, start, length = hashing.words_of(doc_id)
    # The first eight bytes as a number decide nearly always, and numbers sort ten times as fast as strings.
    unused_bits = (8 * np.clip(8 - length, 0, 7)).astype(np.uint64)
    prefix = np.where(length > 0, words[start].byteswap() >> unused_bits << unused_bits, np.uint64(0))
    order = np.argsort(~prefix if descending else prefix)
    order = order[stable_order(group[order], int(group.max(initial=-1)) + 1)]
    group, prefix = group[order], prefix[order]
    run = np.cumsum(np.diff(group, prepend=-1).astype(bool) | np.diff(prefix, prepend=~prefix[:1]).astype(bool))
    place = _inside_ties(run, None)
    if len(place):
        ties = pa.table({"run": run[place], "doc_id": doc_id.take(pa.array(order[place]))})
        direction = "descending" if descending else "ascending"
        by = pc.sort_indices(ties, sort_keys=[("run", "ascending"), ("doc_id", direction)])
        order[place] = order[place][by.to_numpy()]
    return order


def repeats(query: IntArray, doc_id: StringArray, key: HashArray | None = None) -> BoolArray:
    """Which rows name a document that an earlier row of the same query already named.

    Args:
        query: int64[m], position of each row's query.
        doc_id: Arrow strings [m].
        key: uint64[m], `keys` of these rows, where they are known.

    Returns:
        bool[m].

    >>> repeats(np.array([0, 0, 1]), pa.array(["a", "a", "a"])).tolist()
    [False, True, False]
    """
    key = keys(query, doc_id) if key is None else key
    again = np.zeros(len(key), bool)
    if not has_repeats(key):
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


def has_repeats(key: HashArray) -> bool:
    """Whether two rows may name the same document for the same query.

    >>> has_repeats(np.array([3, 1, 3], np.uint64))
    True
    """
    ordered = np.sort(key)  # several times as fast as argsort, and mostly nothing is repeated
    return bool((ordered[1:] == ordered[:-1]).any())


def find_judgements(query: IntArray, doc_id: StringArray, pool: Pool, key: HashArray | None = None) -> IntArray:
    """The row of the pool that judges each retrieved row, or -1.

    Args:
        query: int64[m], position of each row's query.
        doc_id: Arrow strings [m].
        pool: the judgements.
        key: uint64[m], `keys` of these rows, where they are known.

    Returns:
        int64[m].

    >>> pool = Pool(1, np.array([0]), pa.array(["d7"]), np.array([2.0]))
    >>> find_judgements(np.array([0, 0]), pa.array(["d3", "d7"]), pool).tolist()
    [-1, 0]
    """
    found = np.full(len(query), -1)
    if len(pool.query) == 0 or len(query) == 0:
        return found
    key = keys(query, doc_id) if key is None else key
    row, judgement = pool.matches(key)
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
    )


def keys(query: IntArray, doc_id: StringArray) -> HashArray:
    """One hash a row, of its query's position and its document's id: equal rows have equal keys.

    >>> bool(keys(np.array([0]), pa.array(["a"]))[0] == keys(np.array([1]), pa.array(["a"]))[0])
    False
    """
    salt = hashing.mix(np.arange(int(query.max(initial=-1)) + 1, dtype=np.uint64))
    found: HashArray = hashing.hash_strings(doc_id) ^ salt[query]
    return found
