"""The judged documents of every query (its pool), and the join of retrieved documents with them.

The join compares hashes first, and then the ids of rows whose hashes match, so it is exact.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, HashArray, IntArray, StringArray, offsets_of

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Subtopics:
    """The subtopics of the judged documents of n queries: one pair for each subtopic that a document is judged for."""

    queries: int
    judgement: IntArray  # int64[s], the row of the pool of each pair, ascending
    query: IntArray  # int64[s], position of the query of each pair, ascending
    subtopic: IntArray  # int64[s], a number for the subtopic, from 0 in every query
    grade: FloatArray  # float64[s], of the document for the subtopic
    _relevant: dict[float, "Subtopics"] = field(default_factory=dict, compare=False)
    _ideal: dict[tuple[float, int], FloatArray] = field(default_factory=dict, compare=False)

    def relevant(self, rel: float) -> "Subtopics":
        """The pairs whose grade is at least `rel`."""
        if rel not in self._relevant:
            chosen = self.grade >= rel
            rows = (self.judgement[chosen], self.query[chosen], self.subtopic[chosen], self.grade[chosen])
            self._relevant[rel] = Subtopics(self.queries, *rows)
        return self._relevant[rel]

    @property
    def number(self) -> IntArray:
        """int64[n]: the subtopics of each query."""
        pairs = np.unique(np.stack([self.query, self.subtopic]), axis=1)
        return np.bincount(pairs[0], minlength=self.queries)

    def ideal(self, alpha: float, depth: int) -> FloatArray:
        """float64[n, depth]: the gain at each rank of an ideal ranking, which is found greedily, as in ndeval.

        The best ranking is NP-hard to find. Among documents of equal gain the one with the largest id comes first.
        """
        if (alpha, depth) not in self._ideal:
            gains = np.zeros((self.queries, depth))
            ends = offsets_of(self.query, self.queries)
            for place in np.unique(self.query).tolist():
                rows = slice(ends[place], ends[place + 1])
                greedy = _greedy(self.judgement[rows], self.subtopic[rows], alpha, depth)
                gains[place, : len(greedy)] = greedy
            self._ideal[alpha, depth] = gains
        return self._ideal[alpha, depth]


def _greedy(document: IntArray, subtopic: IntArray, alpha: float, depth: int) -> list[float]:
    """The gains of one query's documents, at each rank by the document that gains most, the last one among equals."""
    rows = np.unique(document, return_inverse=True)[1]
    is_about = np.zeros((int(rows.max()) + 1, int(subtopic.max()) + 1))
    is_about[rows, subtopic] = 1.0
    is_about = is_about[::-1]
    value, gains = np.ones(is_about.shape[1]), list[float]()
    for _ in range(min(depth, len(is_about))):
        gain = np.add.accumulate(is_about * value, axis=1)[:, -1]
        best = int(np.argmax(gain >= gain.max() * (1.0 - _ROUNDING)))  # the first one of equal gain
        gains.append(float(gain[best]))
        value = np.where(is_about[best] > 0, value * (1.0 - alpha), value)
        is_about = np.delete(is_about, best, axis=0)
    return gains


@dataclass(frozen=True)
class Pool:
    """The judged documents of n queries, sorted by query."""

    queries: int
    query: IntArray  # int64[p], position of the query of each judgement, ascending
    doc_id: StringArray  # Arrow strings [p]; no document occurs twice in one query
    grade: FloatArray  # float64[p]; below 0 means "in the pool, not judged" (as in infAP's sampled pools)
    subtopics: Subtopics | None = None  # those that the documents are judged for; None if no metric needs them

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
        """uint64[p + 1]: the keys in ascending order, and the largest uint64 as a sentinel."""
        return np.append(self._keys[self.by_key], np.uint64(0xFFFFFFFFFFFFFFFF))

    @cached_property
    def _keys(self) -> HashArray:
        return keys(self.query, self.doc_id)

    def matches(self, key: HashArray) -> tuple[IntArray, IntArray]:
        """Rows whose key is the key of a judgement, and that judgement.

        A table of the prefixes of keys, small enough for the processor's cache, rules out nearly all other rows
        (Bloom, CACM 13(7), 1970). A second table gives the first judgement of each prefix, so that few steps reach
        the key.
        """
        row = np.flatnonzero(self._has_prefix[key >> self._prefix_shift])
        candidates = key[row]
        position = self._first[candidates >> self._first_shift]
        pending = np.arange(len(row))
        while len(pending):
            pending = pending[self.key[position[pending]] < candidates[pending]]
            position[pending] += 1
        is_match = (self.key[position] == candidates) & (position < len(self.query))
        return row[is_match], self.by_key[position[is_match]]

    @cached_property
    def _prefix_shift(self) -> np.uint64:
        return np.uint64(64 - min(22, max(8, (8 * len(self.query)).bit_length())))

    @cached_property
    def _has_prefix(self) -> BoolArray:
        """For each prefix, whether a judgement's key begins with it."""
        seen = np.zeros(1 << (64 - int(self._prefix_shift)), bool)
        seen[self._keys >> self._prefix_shift] = True
        return seen

    @cached_property
    def _first_shift(self) -> np.uint64:
        return np.uint64(64 - max(8, len(self.query).bit_length()))

    @cached_property
    def _first(self) -> IntArray:
        """The first judgement at or after each prefix, in the order of keys."""
        prefixes = (self.key[:-1] >> self._first_shift).astype(np.int64)
        return offsets_of(prefixes, 1 << (64 - int(self._first_shift)))


def keys(query: IntArray, doc_id: StringArray) -> HashArray:
    """One hash per row, of its query's position and its document's id: equal rows have equal keys.

    >>> bool(keys(np.array([0]), pa.array(["a"]))[0] == keys(np.array([1]), pa.array(["a"]))[0])
    False
    """
    salt = hashing.mix(np.arange(int(query.max(initial=-1)) + 1, dtype=np.uint64))
    salted: HashArray = hashing.hash_strings(doc_id) ^ salt[query]
    return salted


def find_judgements(query: IntArray, doc_id: StringArray, pool: Pool, key: HashArray | None = None) -> IntArray:
    """The row of the pool that judges each retrieved row, or -1.

    Args:
        query: int64[m], position of each row's query.
        doc_id: Arrow strings [m].
        pool: the judgements.
        key: uint64[m], `keys` of these rows, if they are known.

    Returns:
        int64[m].

    >>> pool = Pool(1, np.array([0]), pa.array(["d7"]), np.array([2.0]))
    >>> find_judgements(np.array([0, 0]), pa.array(["d3", "d7"]), pool).tolist()
    [-1, 0]
    """
    judged_by = np.full(len(query), -1)
    if len(pool.query) == 0 or len(query) == 0:
        return judged_by
    key = keys(query, doc_id) if key is None else key
    row, judgement = pool.matches(key)
    equal = pc.equal(doc_id.take(pa.array(row)), pool.doc_id.take(pa.array(judgement)))
    equal = equal.to_numpy(zero_copy_only=False) & (query[row] == pool.query[judgement])
    judged_by[row[equal]] = judgement[equal]
    for collided in row[~equal].tolist():  # another judged document has the same hash: about 1 in 10^13
        same_query = np.flatnonzero(pool.query == query[collided])
        ids = pool.doc_id.take(pa.array(same_query)).to_pylist()
        if doc_id[collided].as_py() in ids:
            judged_by[collided] = same_query[ids.index(doc_id[collided].as_py())]
    return judged_by
