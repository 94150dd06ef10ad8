"""Join queries with their judgements; refuse contradictory input and name its lines."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.pieces import Reader
from rankbeam.transforms.clients.formats.sources import shown
from rankbeam.transforms.clients.formats.syntax.lines import repeated_at
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import HashArray, IntArray, offsets_of
from rankbeam.transforms.kernels.ranking.orders import order_by_id
from rankbeam.transforms.kernels.ranking.rankings import repeats
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.dataset import DatasetSummary
from rankbeam.transforms.records.errors import InputError, shortened

_ADVICE = "keep one, or, if TREC's second column names subtopics, add a metric of subtopics such as alpha_nDCG@20"


def judge(
    queries: Sequence[pa.RecordBatch] | None,
    qrels: Sequence[pa.RecordBatch],
    highest: tuple[float, str] = (math.inf, ""),
    *,
    everyone: bool = False,
    spans: bool = False,
    subtopics: bool = False,
    max_rel: float = math.inf,
) -> tuple[pa.RecordBatch, DatasetSummary]:
    """Join the queries and the judgements of one bucket; with subtopics, a document's highest grade counts."""
    schema = columns.SUBTOPIC_QRELS if subtopics else columns.QRELS
    judgements = pa.Table.from_batches(qrels, schema).combine_chunks()
    table = pa.Table.from_batches(queries or [], columns.QUERIES).combine_chunks()
    judged_ids = pc.unique(judgements["query_id"])
    known = _judged_queries(None if queries is None else table, judged_ids, everyone=everyone)
    ids = flat(known["query_id"])
    positions = pc.index_in(judgements["query_id"], value_set=ids)
    unknown = pc.unique(judgements["query_id"].filter(positions.is_null()))
    known_judgements = judgements.append_column("position", positions).filter(positions.is_valid())
    judgements, repeated = _without_repeats(known_judgements, "keep one" if spans or subtopics else _ADVICE)
    by_subtopic = judgements
    if subtopics:
        grouped = judgements.group_by(["query_id", "doc_id", "position"]).aggregate([("grade", "max")])
        judgements = grouped.rename_columns(["query_id", "doc_id", "position", "grade"]).combine_chunks()
    position = judgements["position"].to_numpy().astype(np.int64)
    order = order_by_id(position, flat(judgements["doc_id"]))
    position, in_order = position[order], pa.array(order)
    doc_id, grade = flat(judgements["doc_id"]).take(in_order), flat(judgements["grade"]).take(in_order)
    _refuse_too_high(ids, position, doc_id, grade, highest)
    fields = list(columns.JUDGED_QUERIES.field("judgements").type.value_type)
    lists = pa.ListArray.from_arrays(
        pa.array(offsets_of(position, len(ids)), pa.int32()),
        pa.StructArray.from_arrays([doc_id, grade], fields=fields),
        mask=pc.invert(pc.is_in(ids, value_set=judged_ids)) if everyone else None,
    )
    joined = pa.RecordBatch.from_arrays(
        [*(flat(known[name]) for name in columns.QUERIES.names), lists], schema=columns.JUDGED_QUERIES
    )
    if subtopics:
        joined = joined.append_column(columns.SUBTOPICS, _subtopics(by_subtopic, position, doc_id, len(ids)))
    unjudged = table["query_id"].filter(pc.invert(pc.is_in(table["query_id"], value_set=judged_ids)))
    grades = grade.to_numpy()
    has_relevant = np.zeros(len(ids), bool)
    has_relevant[position[grades > 0]] = True
    irrelevant = ids.filter(pa.array(np.asarray(lists.is_valid()) & ~has_relevant))
    query_hash = hashing.hash_strings(ids)
    qrels_hash = _sum(hashing.combine(query_hash[position], hashing.hash_strings(doc_id), grades.view(np.uint64)))
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
        highest_grade=float(grades.max(initial=0.0)),
        also_asked=lists.null_count,
        above_max_rel=int((grades > max_rel).sum()),
        fractional=int((grades % 1.0 != 0.0).sum()),
        qrels_hash=qrels_hash + (_hash_of_subtopics(by_subtopic) if subtopics else 0),
        subtopics=_most_subtopics(by_subtopic) if subtopics else 0,
        texts_hash=_sum(hashing.combine(query_hash, hashing.hash_strings(flat(pc.fill_null(known["text"], ""))))),
    )
    return joined, summary


def _judged_queries(queries: pa.Table | None, judged_ids: pa.Array, *, everyone: bool) -> pa.Table:
    """The queries to run, by id: the judged ones, or all; without a file of queries, only their ids are known."""
    if queries is None:
        ids = judged_ids.take(pc.sort_indices(judged_ids))
        nulls = [pa.nulls(len(ids), field.type) for field in columns.QUERIES if field.name != "query_id"]
        return pa.Table.from_arrays([ids, *nulls], schema=columns.QUERIES)
    if (repeated_query := repeated_id(queries["query_id"])) is not None:
        problem = f"query {shortened(repr(repeated_query))} is given more than once; ids must differ"
        raise Conflict(problem, {"query_id": repeated_query}, are_queries=True)
    is_judged = pc.is_in(queries["query_id"], value_set=judged_ids)
    return (queries if everyone else queries.filter(is_judged)).sort_by("query_id")


class Conflict(Exception):
    """Contradictory rows; `located` reads the files again to find their lines."""

    def __init__(self, problem: str, values: Mapping[str, str], advice: str = "", *, are_queries: bool = False) -> None:
        super().__init__(problem, values, advice)
        self.problem, self.values, self.advice, self.are_queries = problem, values, advice, are_queries

    def located(self, pattern: str, reader: Reader, more: str = "") -> InputError:
        """An error that names the contradicting lines; `more` is further advice."""
        return at_last(self.problem, pattern, reader, self.values, self.advice + more)


def at_last(problem: str, pattern: str, reader: Reader, values: Mapping[str, str], advice: str = "") -> InputError:
    """An error that names contradicting rows; the files are read again to find the rows by their values."""
    places = []
    for path in sources.expand(pattern):
        for batch in reader(path):
            is_wanted = np.logical_and.reduce(
                [np.asarray(pc.equal(batch[name], value)) for name, value in values.items()]
            )
            places += [(shown(path), line) for line in batch["line"].filter(pa.array(is_wanted)).to_pylist()]
    return repeated_at(problem, places, advice)


def _refuse_too_high(
    ids: pa.Array, position: IntArray, doc_id: pa.Array, grade: pa.Array, highest: tuple[float, str]
) -> None:
    grades = grade.to_numpy()
    if len(grades) and grades.max() > highest[0]:
        row, (highest_grade, metric) = int(np.argmax(grades)), highest
        problem = f"{metric} cannot be computed with the grade {grades[row]:g}: gains overflow above {highest_grade:g}"
        raise Conflict(problem, {"query_id": ids[position[row]].as_py(), "doc_id": doc_id[row].as_py()})


def repeated_id(ids: pa.Array | pa.ChunkedArray) -> str | None:
    """The smallest id that occurs more than once; None if all differ."""
    counts = pc.value_counts(ids)
    return min(counts.filter(pc.greater(counts.field("counts"), 1)).field("values").to_pylist(), default=None)


def _without_repeats(judgements: pa.Table, advice: str) -> tuple[pa.Table, int]:
    position, documents = judgements["position"].to_numpy().astype(np.int64), _judged_things(judgements)
    is_repeated = repeats(position, documents)
    if not is_repeated.any():
        return judgements, 0
    by = [name for name in judgements.column_names if name not in ("grade", "position")]
    grades = judgements.group_by(by).aggregate([("grade", "min"), ("grade", "max")])
    contradicting = grades.filter(pc.not_equal(grades["grade_min"], grades["grade_max"]))
    if contradicting.num_rows:
        first = contradicting.sort_by([(name, "ascending") for name in by]).slice(0, 1).to_pylist()[0]
        place = f"query {shortened(repr(first['query_id']))}"
        place += f" and subtopic {shortened(first['subtopic'])!r}" if "subtopic" in by else ""
        problem = f"document {shortened(repr(first['doc_id']))} has two grades for {place}; {advice}"
        raise Conflict(problem, {name: first[name] for name in by})
    return judgements.filter(pa.array(~is_repeated)), int(is_repeated.sum())


def _judged_things(judgements: pa.Table) -> pa.Array:
    """The document that each row judges, with its subtopic if there is one."""
    documents = flat(judgements["doc_id"])
    if "subtopic" not in judgements.column_names:
        return documents
    return pc.binary_join_element_wise(flat(judgements["subtopic"]), documents, "\n")  # no id contains a line end


def _subtopics(judgements: pa.Table, position: IntArray, doc_id: pa.Array, queries: int) -> pa.ListArray:
    """For each query, judgements, subtopics and grades of its documents; `position`: int64[p], ascending."""
    judged = judgements.filter(pc.greater_equal(judgements["grade"], 0.0))
    query = judged["position"].to_numpy().astype(np.int64)
    row = pc.index_in(_keys(query, flat(judged["doc_id"])), _keys(position, doc_id)).to_numpy().astype(np.int64)
    subtopic = _subtopic_numbers(query, flat(judged["subtopic"]))
    order = np.lexsort((subtopic, row))
    place = row[order] - offsets_of(position, queries)[query[order]]
    grade = flat(judged["grade"]).take(pa.array(order))
    arrays = [pa.array(place, pa.int32()), pa.array(subtopic[order], pa.int32()), grade]
    structs = pa.StructArray.from_arrays(arrays, fields=list(columns.SUBTOPICS.type.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets_of(query[order], queries), pa.int32()), structs)


def _keys(query: IntArray, doc_id: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pc.cast(pa.array(query), pa.string()), doc_id, "\n")


def _subtopic_numbers(query: IntArray, subtopic: pa.Array) -> IntArray:
    """Number each query's subtopics from 0; subtopics that are numbers keep their order."""
    names = np.array(subtopic.to_pylist(), object).astype(str)
    order = np.lexsort((names, np.char.str_len(names), query)) if len(names) else np.zeros(0, np.int64)
    is_new = np.ones(len(order), bool)
    is_new[1:] = (names[order][1:] != names[order][:-1]) | (np.diff(query[order]) != 0)
    running = np.cumsum(is_new) - 1
    first = np.searchsorted(query[order], query[order])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = running - running[first]
    return numbers


def _most_subtopics(judgements: pa.Table) -> int:
    numbers = judgements.group_by("query_id").aggregate([("subtopic", "count_distinct")])
    return int(pc.max(numbers["subtopic_count_distinct"]).as_py() or 0)


def _hash_of_subtopics(judgements: pa.Table) -> int:
    query, documents = flat(judgements["query_id"]), _judged_things(judgements)
    bits = flat(judgements["grade"]).to_numpy().view(np.uint64)
    return _sum(hashing.combine(hashing.hash_strings(query), hashing.hash_strings(documents), bits))


def _attribute_names(attributes: pa.ChunkedArray) -> tuple[str, ...]:
    items = pc.list_flatten(attributes)
    return tuple(sorted(pc.unique(pc.struct_field(items, "name")).to_pylist()))


def _smallest(ids: pa.Array) -> tuple[str, ...]:
    return tuple(sorted(ids.to_pylist())[:3])


def _sum(hashes: HashArray) -> int:
    return int(hashes.sum(dtype=np.uint64))


def flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
