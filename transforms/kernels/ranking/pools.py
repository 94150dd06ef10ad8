"""Which retrieved document is judged: the pool of every query, and the join with it by hashes, exact on a match."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, HashArray, IntArray, StringArray, offsets_of


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


def keys(query: IntArray, doc_id: StringArray) -> HashArray:
    """One hash a row, of its query's position and its document's id: equal rows have equal keys.

    >>> bool(keys(np.array([0]), pa.array(["a"]))[0] == keys(np.array([1]), pa.array(["a"]))[0])
    False
    """
    salt = hashing.mix(np.arange(int(query.max(initial=-1)) + 1, dtype=np.uint64))
    found: HashArray = hashing.hash_strings(doc_id) ^ salt[query]
    return found


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
