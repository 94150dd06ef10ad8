"""Find the columns of a Parquet file or a BigQuery table under the names in common use, and cast them."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.formats.syntax import ids, lines
from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.records.errors import InputError, did_you_mean, shortened

QUERY_NAMES = ("query_id", "query-id", "q_id", "qid", "query")
# PyTerrier's tables have both `docno`, the id, and `docid`, the position in PyTerrier's index.
DOC_NAMES = ("doc_id", "corpus-id", "corpus_id", "docno", "docid", "document_id")
GRADE_NAMES = ("grade", "relevance", "rel", "score", "label")
SUBTOPIC_NAMES = ("subtopic", "subtopic_id", "iteration", "intent")
ID_NAMES = ("_id", "id", "query_id", "qid", "doc_id", "docno", "docid")
TEXT_NAMES = ("text", "query", "question", "contents", "body")

_MOST_COLUMNS = 1000  # maximum length of a table's column names in a message

ColumnNames = Mapping[str, Sequence[str]]  # names in common use for each of our columns, preferred ones first

TEXTS: ColumnNames = {"id": ID_NAMES, "text": TEXT_NAMES}
_PAIR = {"query_id": QUERY_NAMES, "doc_id": DOC_NAMES}
_QRELS = {**_PAIR, "grade": GRADE_NAMES}
COLUMN_NAMES: Mapping[str, ColumnNames] = {
    "qrels": _QRELS,
    "subtopic_qrels": {**_QRELS, "subtopic": SUBTOPIC_NAMES},
    "clicks": {**_PAIR, "clicks": ("clicks",), "impressions": ("impressions", "views")},
    "run": {**_PAIR, "score": ("score",)},
    "queries": TEXTS,
    "corpus": TEXTS,
    "ids": {"id": ID_NAMES},
    "evidence": {**_PAIR, "start": ("start",), "end": ("end",), "quote": ("quote",)},
}  # the columns that a table must have, by role
OPTIONAL: Mapping[str, ColumnNames] = {"evidence": {"group": ("group",), "grade": GRADE_NAMES}}
"""Columns, by role, that are read in addition if a table has them."""


def has_columns(names: Container[str], role: str) -> bool:
    return all(any(name in names for name in known) for known in COLUMN_NAMES[role].values())


def find_columns(path: str, columns: Sequence[str], role: str, *, any_case: bool = False) -> dict[str, str]:
    """The file's names of a role's columns, and of the optional ones that it has, by our names."""
    names = {}
    problems = []
    by_spelling = {name.lower() if any_case else name: name for name in columns}
    for ours, theirs in COLUMN_NAMES[role].items():
        there = [name for name in theirs if name in by_spelling]
        if not there:
            hint = did_you_mean(ours, columns)
            near = f"; {hint}" if hint.startswith("did") else ""
            problems.append(f"no column for {ours} (one of {', '.join(theirs)}{near})")
        else:
            names[ours] = by_spelling[there[0]]
            if ours == "grade" and ours not in there and len(there) > 1:
                problems.append(f"{' and '.join(there)} may all be the grade: rename the one that is to {ours!r}")
    if problems:
        raise InputError(
            f"{'; '.join(problems)}; the table has: {shortened(', '.join(columns), _MOST_COLUMNS)}", path=path
        )
    for ours, theirs in OPTIONAL.get(role, {}).items():
        there = [by_spelling[name] for name in theirs if name in by_spelling]
        if there:
            names[ours] = there[0]
    is_text = COLUMN_NAMES[role] is TEXTS  # all other columns are read as attributes
    read = columns if is_text else list(names.values())
    refuse_repeated(path, [name for name in columns if name in read])
    return names


def refuse_repeated(path: str, columns: Sequence[str], line: int | None = None) -> None:
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"has two columns named {shortened(repr(twice))}; keep one", path=path, line=line)


def map_columns(
    path: str, batches: Iterable[pa.RecordBatch], names: Mapping[str, str], schema: pa.Schema, rows: int = 0
) -> Iterator[pa.RecordBatch]:
    """Rename the columns of batches to our names, and cast them to a schema."""
    for batch in batches:
        line = pa.array(np.arange(rows + 1, rows + batch.num_rows + 1))
        arrays = [cast(path, batch.column(name), schema.field(ours), rows) for ours, name in names.items()]
        rows += batch.num_rows
        yield pa.RecordBatch.from_arrays([*arrays, line], schema=schema)


def cast(path: str, column: pa.Array, field: pa.Field, rows: int) -> pa.Array:
    """Cast a column to a field's type; nulls and invalid ids are refused."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()  # nulls of a dictionary are not in `null_count`
    if column.null_count:
        line = rows + 1 + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"the {field.name} is null", path=path, line=line)
    if pa.types.is_boolean(column.type) and not field.name.endswith("_id"):
        raise InputError(f"the {field.name} is a Boolean; write a number", path=path, line=rows + 1)
    values = convert_column(path, _whole(column) if field.name.endswith("_id") else column, field, rows)
    for bad, fault in _faults(column, values) if field.name.endswith("_id") else ():
        if bad.any():
            raise InputError(f"the {field.name} {fault}", path=path, line=rows + 1 + int(np.argmax(bad)))
    return values


def _whole(column: pa.Array) -> pa.Array:
    """Convert numbers to integers if all are whole: their text has no exponent. Decimals lose zeros at the end."""
    if pa.types.is_decimal(column.type):
        try:
            return pc.cast(column, pa.int64())
        except pa.ArrowInvalid:  # larger numbers, or fractions
            return pa.array(map(ids.as_text, column.to_pylist()), pa.string())
    if not pa.types.is_floating(column.type):
        return column
    numbers = column.to_numpy(zero_copy_only=False).astype(np.float64)
    is_whole = (np.abs(numbers) < ids.LEAST_INEXACT) & (numbers == np.floor(numbers))
    return pa.array(numbers.astype(np.int64)) if is_whole.all() else column


def _faults(column: pa.Array, as_strings: pa.StringArray) -> Iterator[tuple[BoolArray, str]]:
    yield from ids.faults(as_strings)
    if pa.types.is_boolean(column.type):
        yield np.ones(len(column), bool), "is a Boolean; an id is a text or a number"
    if pa.types.is_floating(column.type):
        numbers = np.abs(column.to_numpy(zero_copy_only=False))
        yield ~np.isfinite(numbers), "is not a finite number"
        yield numbers >= ids.LEAST_INEXACT, ids.INEXACT


def convert_column(path: str, column: pa.Array, field: pa.Field, rows: int) -> pa.Array:
    """Cast a column to a field's type; unlike `cast`, keep nulls and invalid ids."""
    try:
        values = pc.cast(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = shortened(str(error), 200)
        problem = f"column {field.name} holds {column.type}, which cannot be read as {field.type} ({reason})"
        raise InputError(problem, path=path, line=_first_uncastable(column, field.type, rows)) from error
    if pa.types.is_string(field.type):
        line = pa.array(np.arange(rows + 1, rows + 1 + len(values)))
        lines.refuse_not_utf8(path, line, values, f"the {field.name}")
    return values


def _first_uncastable(column: pa.Array, kind: pa.DataType, rows: int) -> int | None:
    """The row, from 1, of the first value that cannot be cast; None if no value of the type can."""
    for position in range(len(column)):
        try:
            pc.cast(column.slice(position, 1), kind)
        except pa.ArrowInvalid:
            return rows + position + 1
        except pa.ArrowNotImplementedError:
            return None
    return None
