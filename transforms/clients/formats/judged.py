"""Join queries with their judgements, and refuse contradictory input, naming its lines."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.formats import rows, sources, texts
from rankbeam.transforms.clients.formats.places import repeated_at
from rankbeam.transforms.clients.formats.sources import shown
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import BoolArray, HashArray, IntArray, offsets_of
from rankbeam.transforms.kernels.ranking.orders import order_by_id
from rankbeam.transforms.kernels.ranking.rankings import repeats
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import shortened

Reader = Callable[[str], Iterator[pa.RecordBatch]]
"""Yields the rows of one file of judgements."""


def judge(
    queries: Sequence[pa.RecordBatch] | None,
    qrels: Sequence[pa.RecordBatch],
    highest: tuple[float, str] = (math.inf, ""),
    *,
    everyone: bool = False,
) -> tuple[pa.RecordBatch, DatasetSummary]:
    """Join the queries and the judgements of one bucket."""
    judgements = pa.Table.from_batches(qrels, columns.QRELS).combine_chunks()
    table = pa.Table.from_batches(queries or [], columns.QUERIES).combine_chunks()
    judged_ids = pc.unique(judgements["query_id"])
    if queries is None:
        ids = judged_ids.take(pc.sort_indices(judged_ids))
        nulls = [pa.nulls(len(ids), field.type) for field in columns.QUERIES if field.name != "query_id"]
        known = pa.Table.from_arrays([ids, *nulls], schema=columns.QUERIES)
    else:
        _refuse_repeated_queries(table)
        is_asked = pc.is_in(table["query_id"], value_set=judged_ids)
        known = (table if everyone else table.filter(is_asked)).sort_by("query_id")
    ids = _flat(known["query_id"])
    positions = pc.index_in(judgements["query_id"], value_set=ids)
    unknown = pc.unique(judgements["query_id"].filter(positions.is_null()))
    known_judgements = judgements.append_column("position", positions).filter(positions.is_valid())
    judgements, repeated = _without_repeats(known_judgements)
    position = judgements["position"].to_numpy().astype(np.int64)
    order = order_by_id(position, _flat(judgements["doc_id"]))
    position, in_order = position[order], pa.array(order)
    doc_id, grade = _flat(judgements["doc_id"]).take(in_order), _flat(judgements["grade"]).take(in_order)
    _refuse_too_high(ids, position, doc_id, grade, highest)
    lists = pa.ListArray.from_arrays(
        pa.array(offsets_of(position, len(ids)), pa.int32()),
        pa.StructArray.from_arrays(
            [doc_id, grade], fields=list(columns.JUDGED_QUERIES.field("judgements").type.value_type)
        ),
        mask=pc.invert(pc.is_in(ids, value_set=judged_ids)) if everyone else None,
    )
    joined = pa.RecordBatch.from_arrays(
        [*(_flat(known[name]) for name in columns.QUERIES.names), lists], schema=columns.JUDGED_QUERIES
    )
    unjudged = table["query_id"].filter(pc.invert(pc.is_in(table["query_id"], value_set=judged_ids)))
    is_judged = np.asarray(lists.is_valid())
    has_relevant = np.zeros(len(ids), bool)
    has_relevant[position[grade.to_numpy() > 0]] = True
    irrelevant = ids.filter(pa.array(is_judged & ~has_relevant))
    query_hash = hashing.hash_strings(ids)
    grade_bits = grade.to_numpy().view(np.uint64)
    summary = DatasetSummary(
        queries=None if queries is None else table.num_rows,
        judged=len(ids) - lists.null_count,
        judgements=judgements.num_rows,
        repeated=repeated,
        without_text=0 if queries is None else int(pc.sum(pc.equal(known["text"], "")).as_py() or 0),
        irrelevant=len(irrelevant),
        irrelevant_ids=_smallest(irrelevant),
        unjudged=len(unjudged),
        unjudged_ids=_smallest(unjudged),
        unknown=len(unknown),
        unknown_ids=_smallest(unknown),
        attributes=_attribute_names(known["attributes"]),
        highest_grade=float(grade.to_numpy().max(initial=0.0)),
        also_asked=lists.null_count,
        qrels_hash=_sum(hashing.combine(query_hash[position], hashing.hash_strings(doc_id), grade_bits)),
        texts_hash=_sum(hashing.combine(query_hash, hashing.hash_strings(_flat(pc.fill_null(known["text"], ""))))),
    )
    return joined, summary


class Conflict(Exception):
    """Contradictory input; `located` reads the files again to find the lines."""

    def __init__(self, query_id: str, doc_id: str | None) -> None:
        super().__init__(query_id, doc_id)
        self.query_id, self.doc_id = query_id, doc_id

    def located(self, queries: str | None, qrels: str, reader: Reader = rows.read_qrels) -> InputError:
        """The error to report."""
        query = shortened(repr(self.query_id))
        if self.doc_id is None:
            assert queries is not None  # noqa: S101  only a file of queries can repeat one
            problem = f"query {query} is given more than once; ids must differ"
            return _at_last(problem, queries, texts.read_queries, {"query_id": self.query_id})
        problem = f"document {shortened(repr(self.doc_id))} has two grades for query {query}; keep one"
        return _at_last(problem, qrels, reader, {"query_id": self.query_id, "doc_id": self.doc_id})


class TooHigh(Conflict):
    """A grade with which a metric cannot be computed."""

    def __init__(self, query_id: str, doc_id: str, grade: float, highest: tuple[float, str]) -> None:
        super().__init__(query_id, doc_id)
        self.grade, self.highest = grade, highest

    def located(
        self,
        queries: str | None,  # noqa: ARG002  the queries have no grades
        qrels: str,
        reader: Reader = rows.read_qrels,
    ) -> InputError:
        """The error to report; see `Conflict.located`."""
        grade, metric = self.highest
        problem = f"{metric} cannot be computed with the grade {self.grade:g}: gains overflow above {grade:g}"
        return _at_last(problem, qrels, reader, {"query_id": self.query_id, "doc_id": self.doc_id or ""})


def _at_last(problem: str, pattern: str, reader: Reader, values: dict[str, str]) -> InputError:
    places = []
    for path in sources.expand(pattern):
        for batch in reader(path):
            is_wanted = np.logical_and.reduce([_numpy(pc.equal(batch[name], value)) for name, value in values.items()])
            places += [(shown(path), line) for line in batch["line"].filter(pa.array(is_wanted)).to_pylist()]
    return repeated_at(problem, places)


def _refuse_too_high(
    ids: pa.Array, position: IntArray, doc_id: pa.Array, grade: pa.Array, highest: tuple[float, str]
) -> None:
    grades = grade.to_numpy()
    if len(grades) and grades.max() > highest[0]:
        row = int(np.argmax(grades))
        raise TooHigh(ids[position[row]].as_py(), doc_id[row].as_py(), float(grades[row]), highest)


def _refuse_repeated_queries(queries: pa.Table) -> None:
    counts = pc.value_counts(queries["query_id"])
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        raise Conflict(min(repeated.field("values").to_pylist()), None)


def _without_repeats(judgements: pa.Table) -> tuple[pa.Table, int]:
    """The judgements without repeated ones, and the number of those."""
    position = judgements["position"].to_numpy().astype(np.int64)
    is_repeated = repeats(position, _flat(judgements["doc_id"]))
    if not is_repeated.any():
        return judgements, 0
    grades = judgements.group_by(["query_id", "doc_id"]).aggregate([("grade", "min"), ("grade", "max")])
    contradicting = grades.filter(pc.not_equal(grades["grade_min"], grades["grade_max"]))
    if contradicting.num_rows:
        first = contradicting.sort_by([("query_id", "ascending"), ("doc_id", "ascending")]).slice(0, 1).to_pylist()[0]
        raise Conflict(first["query_id"], first["doc_id"])
    return judgements.filter(pa.array(~is_repeated)), int(is_repeated.sum())


def _attribute_names(attributes: pa.ChunkedArray) -> tuple[str, ...]:
    items = pc.list_flatten(attributes)
    return tuple(sorted(pc.unique(pc.struct_field(items, "name")).to_pylist()))


def _smallest(ids: pa.Array) -> tuple[str, ...]:
    return tuple(sorted(ids.to_pylist())[:3])


def _sum(hashes: HashArray) -> int:
    return int(hashes.sum(dtype=np.uint64))


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)


def _numpy(array: pa.Array) -> BoolArray:
    values: BoolArray = array.to_numpy(zero_copy_only=False)
    return values
