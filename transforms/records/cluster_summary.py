"""Clusters of the queries of a dataset, summarised so that a dataset of one cluster is refused before any call."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import HashArray, IntArray
from rankbeam.transforms.kernels.hashing import hash_strings, mix
from rankbeam.transforms.records.slices import MISSING

SOURCE_DOCUMENT = "source_document"
"""The attribute of generated questions that names the first document that they rest on."""

_SALT = np.uint64(0xA24BAED4963EE407)  # a query without the attribute is no member of the cluster that has its id
_CELLS = 512
_MASK = (1 << 64) - 1


def values_of(queries: pa.RecordBatch, attribute: str) -> tuple[IntArray, pa.StringArray]:
    """The rows of the queries that have an attribute, and their values; an empty value counts as none."""
    lists = queries["attributes"]
    flat = lists.flatten()
    row = np.repeat(np.arange(len(lists)), pc.fill_null(lists.value_lengths(), 0).to_numpy())
    value = flat.field("value")
    has_value = pc.invert(pc.is_in(value, value_set=pa.array(["", MISSING, None], pa.string())))
    known = pc.and_(pc.equal(flat.field("name"), attribute), has_value)
    return row[known.to_numpy(zero_copy_only=False)], value.filter(known)


def cluster_hashes(queries: pa.RecordBatch, attribute: str) -> HashArray:
    """uint64[n], the hash of each query's cluster; a query without the attribute is a cluster of its own."""
    hashes = hash_strings(queries["query_id"])
    row, values = values_of(queries, attribute)
    if len(row):
        hashes[row] = mix(hash_strings(values) ^ _SALT)
    return hashes


@dataclass(frozen=True)
class ClusterSummary:
    """Mergeable facts about the clusters of some queries.

    Attributes:
        queries: number of queries.
        lowest, highest: extremes of the clusters' hashes, which are equal if there is one cluster.
        example: the alphabetically first value.
        counts: queries by the hash of their source document, in two tables of `_CELLS` cells (Cormode and
            Muthukrishnan, "An improved data stream summary: the count-min sketch", 2005); empty without any.
    """

    queries: int = 0
    lowest: int = _MASK
    highest: int = 0
    example: str = ""
    counts: tuple[int, ...] = ()

    @classmethod
    def of(cls, queries: pa.RecordBatch, attribute: str | None) -> "ClusterSummary":
        """The facts about some queries, clustered by an attribute, or else by their source documents."""
        if not queries.num_rows:
            return cls()
        row, values = values_of(queries, attribute or SOURCE_DOCUMENT)
        if attribute is not None:
            hashes = cluster_hashes(queries, attribute)
            example = pc.min(values).as_py() or ""
            return cls(queries.num_rows, int(hashes.min()), int(hashes.max()), example)
        if not len(row):
            return cls(queries.num_rows)
        hashes = hash_strings(values)
        tables = [
            np.bincount((part % np.uint64(_CELLS)).astype(np.int64), minlength=_CELLS) for part in (hashes, mix(hashes))
        ]
        return cls(queries.num_rows, counts=tuple(np.concatenate(tables).tolist()))

    def merge(self, other: "ClusterSummary") -> "ClusterSummary":
        """The facts about both sets of queries; associative and commutative, with `ClusterSummary()` neutral."""
        counts = self.counts or other.counts
        if self.counts and other.counts:
            counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return ClusterSummary(
            self.queries + other.queries,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            min(filter(None, (self.example, other.example)), default=""),
            counts,
        )

    @property
    def is_one(self) -> bool:
        """Return whether all queries are one cluster."""
        return self.queries > 0 and self.lowest == self.highest

    @property
    def largest(self) -> int:
        """Upper bound on the number of queries that share a source document."""
        tables = self.counts[:_CELLS], self.counts[_CELLS:]
        return min(max(table, default=0) for table in tables)
