"""Join queries with their reference answers: an attribute of the queries, or separate JSON lines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.judged import Conflict, flat, repeated_id
from rankbeam.transforms.clients.formats.syntax import json_lines
from rankbeam.transforms.clients.formats.syntax.ids import json_id
from rankbeam.transforms.clients.storage.json_paths import parse_literal
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.kernels.arrays import StringArray
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.dataset import DatasetSummary, References
from rankbeam.transforms.records.errors import InputError, shortened
from rankbeam.transforms.records.trajectories import EXPECTED_STEPS, has_steps, rows_of, steps_in


class _Nugget(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    text: str
    vital: bool = True


class _Reference(BaseModel):
    """One line; other keys are ignored."""

    model_config = ConfigDict(strict=True)

    query_id: Any
    answer: str | None = None
    answerable: bool | None = None
    nuggets: list[_Nugget] | None = None
    expected_steps: Any = None

    @field_validator("expected_steps")
    @classmethod
    def _are_steps(cls, value: Any) -> list[dict[str, Any]] | None:
        return None if value is None else rows_of(steps_in(value))

    @model_validator(mode="after")
    def _says_something(self) -> "_Reference":
        says_none = not (self.answer or "").strip() and not self.nuggets and self.expected_steps is None
        if says_none and self.answerable is not False:
            raise ValueError("has no answer, and does not say answerable: false")
        return self


def read_references(path: str) -> Iterator[pa.RecordBatch]:
    """Read {query_id, answer, answerable?, nuggets?: [{text, vital}], expected_steps?: [{tool, args}]}."""
    rows = (_row(path, line, reference) for line, reference in json_lines.parsed_lines(path, _Reference))
    yield from json_lines.in_batches(rows, columns.REFERENCES)


def reference_rows(pattern: str) -> Iterator[dict[str, Any]]:
    for path in sources.expand(pattern):
        for batch in read_references(path):
            yield from batch.to_pylist()


def _row(path: str, line: int, reference: _Reference) -> dict[str, Any]:
    query_id = json_id(path, line, reference.query_id)
    return {"query_id": query_id, "reference": reference.model_dump(exclude={"query_id"}), "line": line}


def join_references(
    references: References,
    queries: pa.RecordBatch,
    parts: Mapping[str, Sequence[pa.RecordBatch]],
    summary: DatasetSummary,
) -> tuple[pa.RecordBatch, DatasetSummary]:
    if references.path is None:
        return from_attribute(queries, references.attribute, summary)
    known = pa.chunked_array([batch["query_id"] for batch in parts["queries"]], pa.string())
    try:
        return with_references(queries, known, parts["references"], summary)
    except Conflict as conflict:
        raise conflict.located(references.path, read_references) from None


def with_references(
    queries: pa.RecordBatch, known: pa.ChunkedArray, references: Sequence[pa.RecordBatch], summary: DatasetSummary
) -> tuple[pa.RecordBatch, DatasetSummary]:
    table = pa.Table.from_batches(references, columns.REFERENCES).combine_chunks()
    ids = table["query_id"]
    foreign = ids.filter(pc.invert(pc.is_in(ids, value_set=known)))
    if len(foreign):
        name = min(foreign.to_pylist())
        raise Conflict(f"no query has the id {shortened(repr(name))}", {"query_id": name}, "take it out")
    if (name := repeated_id(ids)) is not None:
        problem = f"query {shortened(repr(name))} has two reference answers"
        raise Conflict(problem, {"query_id": name}, "keep one")
    place = pc.index_in(queries["query_id"], value_set=ids)
    return _join(queries, flat(table["reference"].take(place)), summary)


def from_attribute(
    queries: pa.RecordBatch, name: str, summary: DatasetSummary
) -> tuple[pa.RecordBatch, DatasetSummary]:
    attributes = queries["attributes"]
    items, owner = attributes.flatten(), pc.list_parent_indices(attributes)
    is_answer = pc.equal(items.field("name"), name)
    place = pc.index_in(pa.array(np.arange(queries.num_rows)), value_set=owner.filter(is_answer).cast(pa.int64()))
    answers = items.field("value").filter(is_answer).take(place).cast(pa.large_string())
    answers = pc.if_else(pc.equal(pc.utf8_trim_whitespace(answers), ""), None, answers)
    steps, is_steps = _expected_steps(items, owner, queries["query_id"])
    known = {"answer": answers, EXPECTED_STEPS: steps}
    reference = pa.StructArray.from_arrays(
        [known.get(field.name, pa.nulls(len(answers), field.type)) for field in columns.REFERENCE],
        fields=list(columns.REFERENCE),
        mask=pc.and_(answers.is_null(), steps.is_null()),
    )
    is_other = pc.invert(pc.or_(is_answer, is_steps))
    counts = np.bincount(owner.filter(is_other).to_numpy(), minlength=queries.num_rows)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    others = pa.ListArray.from_arrays(offsets, items.filter(is_other), mask=attributes.is_null())
    position = queries.schema.get_field_index("attributes")
    queries = queries.set_column(position, queries.schema.field("attributes"), others.cast(columns.ATTRIBUTES))
    names = tuple(attribute for attribute in summary.attributes if attribute != name)
    return _join(queries, reference, replace(summary, attributes=names))


def _expected_steps(items: pa.StructArray, owner: pa.Array, ids: StringArray) -> tuple[pa.Array, pa.BooleanArray]:
    """The queries' expected steps, and which attributes hold them; an attribute of that name may hold other things."""
    expected: list[list[dict[str, Any]] | None] = [None] * len(ids)
    is_steps = np.zeros(len(items), bool)
    for place in np.flatnonzero(pc.equal(items.field("name"), EXPECTED_STEPS)).tolist():
        value = parse_literal(items.field("value")[place].as_py())
        if has_steps(value):
            query = owner[place].as_py()
            try:
                expected[query] = rows_of(steps_in(value))
            except ValueError as error:
                raise InputError(f"query {shortened(repr(ids[query].as_py()))}: {EXPECTED_STEPS}: {error}") from error
            is_steps[place] = True
    return pa.array(expected, columns.REFERENCE.field(EXPECTED_STEPS).type), pa.array(is_steps)


def _join(
    queries: pa.RecordBatch, reference: pa.StructArray, summary: DatasetSummary
) -> tuple[pa.RecordBatch, DatasetSummary]:
    lacking = queries["query_id"].filter(reference.is_null())
    ids = hashing.hash_strings(queries["query_id"].filter(reference.is_valid()))
    # The hash is older than expected steps; without them it must not change.
    entries = (
        sorted(part for part in entry.items() if part != (EXPECTED_STEPS, None))
        for entry in reference.drop_null().to_pylist()
    )
    texts = pa.array(map(repr, entries), pa.string())
    joined = queries.append_column(columns.REFERENCED_QUERIES.field("reference"), reference)
    return joined, replace(
        summary,
        referenced=len(ids),
        without_reference=len(lacking),
        without_reference_ids=tuple(sorted(lacking.to_pylist())[:3]),
        references_hash=int(hashing.combine(ids, hashing.hash_strings(texts)).sum(dtype=np.uint64)),
    )
