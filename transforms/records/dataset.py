"""Summary of a dataset after all of it has been read: counts, warnings, fingerprint, clusters of queries."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import HashArray, IntArray
from rankbeam.transforms.kernels.hashing import hash_strings, mix
from rankbeam.transforms.records.conversations import CONVERSATION
from rankbeam.transforms.records.errors import InputError, did_you_mean, pluralize, shortened
from rankbeam.transforms.records.holes import Holes
from rankbeam.transforms.records.slices import MISSING

SOURCE_DOCUMENT = "source_document"
"""The attribute of generated questions that names the first document that they rest on."""

_SALT = np.uint64(0xA24BAED4963EE407)  # a query without the attribute does not belong to the cluster that has its id
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
    """Mergeable facts about the clusters of some queries."""

    queries: int = 0
    lowest: int = _MASK  # the smallest hash of a cluster; equal to the largest if there is one cluster
    highest: int = 0
    example: str = ""  # the alphabetically first value
    # Queries by the hash of their source document, in two tables of `_CELLS` cells (Cormode and Muthukrishnan, "An
    # improved data stream summary: the count-min sketch", 2005); empty without any.
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


_EXAMPLES = 3
_MODULUS = 1 << 64
_MUCH = 0.2  # of the queries, about one document


@dataclass(frozen=True)
class References:
    """The source of reference answers."""

    attribute: str = ""
    path: str | None = None  # None for an attribute


@dataclass(frozen=True)
class DatasetSummary:
    """A mergeable summary."""

    queries: int | None = None  # queries in the file; None without a file of queries
    judged: int = 0
    judgements: int = 0
    repeated: int = 0
    without_text: int = 0  # judged queries whose text is empty
    irrelevant: int = 0  # judged queries of which no grade is above 0, with some of their ids
    irrelevant_ids: tuple[str, ...] = ()
    unjudged: int = 0
    unjudged_ids: tuple[str, ...] = ()
    unknown: int = 0
    unknown_ids: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    also_asked: int = 0
    referenced: int = 0
    without_reference: int = 0
    without_reference_ids: tuple[str, ...] = ()
    qrels_hash: int = 0
    texts_hash: int = 0
    references_hash: int = 0
    highest_grade: float = 0.0
    subtopics: int = 0  # of the query that has the most; 0 if they are not read
    clusters: ClusterSummary = field(default_factory=ClusterSummary)
    fractional: int = 0  # judgements whose grade is not a whole number
    above_max_rel: int = 0  # judgements whose grade a metric lowers to its `max_rel`

    def merge(self, other: "DatasetSummary") -> "DatasetSummary":
        """The summary of both parts; associative and commutative, with `DatasetSummary()` neutral."""
        merged: dict[str, Any] = {}
        for field_ in fields(self):
            a, b = getattr(self, field_.name), getattr(other, field_.name)
            if field_.name.endswith("_ids"):
                merged[field_.name] = tuple(sorted({*a, *b})[:_EXAMPLES])
            elif field_.name == "attributes":
                merged[field_.name] = tuple(sorted({*a, *b}))
            elif field_.name in ("highest_grade", "subtopics"):
                merged[field_.name] = max(a, b)
            elif field_.name == "clusters":
                merged[field_.name] = a.merge(b)
            elif a is None or b is None:
                merged[field_.name] = b if a is None else a
            else:
                total = a + b
                merged[field_.name] = total % _MODULUS if field_.name.endswith("_hash") else total
        return DatasetSummary(**merged)

    @property
    def fingerprint(self) -> str:
        """Identifies judgements, query texts and reference answers, whatever format, order or files they come in."""
        references = f"-{self.references_hash:016x}" if self.referenced else ""
        return f"{self.qrels_hash:016x}-{self.texts_hash:016x}{references}"

    def check(
        self,
        queries_path: str | None,
        qrels_path: str | None,
        slices: tuple[str, ...],
        references: "References | None" = None,
        cluster: str | None = None,
        holes: Holes | None = None,
    ) -> None:
        """Refuse a dataset that cannot be used to evaluate anything."""
        if self.queries == 0:
            judged = f"; {qrels_path} judges queries such as {_quoted(self.unknown_ids)}" if qrels_path else ""
            raise InputError(f"holds no query{judged}", path=queries_path)
        if qrels_path is not None:
            self._check_judgements(queries_path, qrels_path)
        if references is not None and self.judged + self.also_asked and not self.referenced:
            raise self._no_reference(references, queries_path)
        for name in slices:
            if name not in self.attributes:
                hint = did_you_mean(name, self.attributes) if self.attributes else "they have no attributes"
                raise InputError(f"no query has the attribute {name!r} to slice by; {hint}", path=queries_path)

        if holes is not None:
            holes.scale(self.highest_grade)
            if self.fractional:
                problem = f"has grades that are not whole numbers: {self.fractional:,}; dataset.qrels_holes compares"
                raise InputError(f"{problem} grades with a judge's, which are whole; round them", path=qrels_path)
        # One conversation is a whole dataset, which `conversations: true` lets count as a cluster.
        if cluster not in (None, CONVERSATION) and self.clusters.is_one:
            problem = f"all queries have the {cluster} {self.clusters.example!r}, and a single cluster has no interval"
            raise InputError(f"{problem}; remove statistics.cluster, or name another attribute", path=queries_path)

    def _no_reference(self, references: "References", queries_path: str | None) -> InputError:
        if references.path is not None:
            return InputError(f"answers none of the queries in {queries_path}", path=references.path)
        hint = did_you_mean(references.attribute, self.attributes) if self.attributes else "they have no attributes"
        problem = f"no query has the attribute {references.attribute!r} that dataset.answers names; {hint}"
        return InputError(problem, path=queries_path)

    def _check_judgements(self, queries_path: str | None, qrels_path: str) -> None:
        if self.judged == 0 and self.unknown == 0:
            raise InputError("holds no judgement", path=qrels_path)
        if self.judged == 0:
            qrels, queries = _quoted(self.unknown_ids), _quoted(self.unjudged_ids)
            problem = (
                f"judges none of the queries in {queries_path}: it has ids such as {qrels}, and they have ids such "
                f"as {queries}"
            )
            raise InputError(problem, path=qrels_path)
        if self.subtopics == 1:
            problem = "names one subtopic for each query, so metrics of subtopics are meaningless; leave them out"
            raise InputError(problem, path=qrels_path)

    def warnings(self) -> Iterator[str]:
        if self.unknown:
            what = pluralize(self.unknown, "judged query", "judged queries")
            yield f"{what} not among the queries, left out: {_quoted(self.unknown_ids)}"
        if self.unjudged and (self.judged or not self.also_asked):  # else there are no judgements at all
            what = pluralize(self.unjudged, "query", "queries")
            but = "in judged metrics only" if self.also_asked else "not asked"
            yield f"{what} without judgements, {but}: {_quoted(self.unjudged_ids)}"
        if self.repeated:
            what = pluralize(self.repeated, "judgement", "judgements")
            yield f"{what} given more than once with the same grade, counted once"
        if self.without_text:
            yield f"{pluralize(self.without_text, 'judged query', 'judged queries')} without text"
        if self.irrelevant:
            what = pluralize(self.irrelevant, "judged query", "judged queries")
            yield f"{what} without a relevant document, so no ranking can find one: {_quoted(self.irrelevant_ids)}"
        if self.referenced and self.without_reference:
            what = pluralize(self.without_reference, "query", "queries")
            yield f"{what} without a reference answer: {_quoted(self.without_reference_ids)}"
        yield from self.cluster_warnings()

    def cluster_warnings(self) -> Iterator[str]:
        """Warn of queries about one document, unless clusters are set."""
        largest = self.clusters.largest
        if largest > 1 and largest > _MUCH * self.clusters.queries:
            share = f"about {largest / self.clusters.queries:.0%} of the queries are about one document"
            advice = f"set statistics: {{cluster: {SOURCE_DOCUMENT}}}"
            yield f"{share} ({SOURCE_DOCUMENT}), so intervals are too short; {advice}"

    def as_json(self) -> dict[str, Any]:
        """The counts, for the `runs` table."""
        unused = () if self.referenced else ("referenced", "without_reference")
        uncounted = ("clusters", "fractional", "above_max_rel", "highest_grade", "subtopics")
        hidden = ("also_asked", "irrelevant", *uncounted, *unused)
        shown = {name: value for name, value in asdict(self).items() if name not in hidden}
        return {name: value for name, value in shown.items() if not name.endswith(("_ids", "_hash"))}


def _quoted(ids: tuple[str, ...]) -> str:
    return ", ".join(shortened(repr(name)) for name in ids) or "none"
