"""Judgements and runs as one JSON object, query id to document id to number: what ranx and BEIR's scripts save."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from rankbeam.transforms.clients.formats import ids, utf8
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import shortened

_BATCH_ROWS = 1 << 16
_Pairs = list[tuple[str, Any]]


def read(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read such a file, whole; its rows are numbered from 1 in the order of the file."""
    number = schema.names[2]
    queries: list[str] = []
    documents: list[str] = []
    values: list[float] = []
    row = 1
    for query, pairs in _queries(path):
        for document, value in pairs:
            queries.append(query)
            documents.append(document)
            values.append(_checked(path, query, document, value, number))
        if len(values) >= _BATCH_ROWS:
            yield _batch(path, schema, queries, documents, values, row)
            row += len(values)
            queries, documents, values = [], [], []
    if values or row == 1:
        yield _batch(path, schema, queries, documents, values, row)


def _queries(path: str) -> Iterator[tuple[str, _Pairs]]:
    content = b"".join(files.read_blocks(path))
    try:
        value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_Object)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(utf8.CONVERT, path=path, line=line) from error
    except json.JSONDecodeError as error:
        advice = "; JSON lines are not read here" if error.msg == "Extra data" else ""
        problem = f"is not one JSON object of query id to document id to number: {error.msg}{advice}"
        raise InputError(problem, path=path, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON ({error})", path=path) from error
    if not value.pairs:
        raise InputError("the file is empty; it has no query", path=path)
    _refuse_twice(path, value.pairs, "the query")
    for query, pairs in value.pairs:
        if not isinstance(pairs, _Object):
            problem = f"the query {shortened(query)!r} has {shortened(json.dumps(pairs, default=str))}"
            raise InputError(f"{problem}; an object of document id to number was expected", path=path)
        _refuse_twice(path, pairs.pairs, f"the query {shortened(query)!r}, the document")
        yield query, pairs.pairs


class _Object:
    """A JSON object that keeps equal keys apart."""

    def __init__(self, pairs: _Pairs) -> None:
        self.pairs = pairs


def _refuse_twice(path: str, pairs: _Pairs, what: str) -> None:
    if len(pairs) == len(dict(pairs)):
        return
    names = [name for name, _ in pairs]
    twice = next(name for name in names if names.count(name) > 1)
    raise InputError(f"{what} {shortened(twice)!r} is given twice; keep one", path=path)


def _checked(path: str, query: str, document: str, value: Any, number: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        written = shortened(json.dumps(value, ensure_ascii=False, default=lambda _: "{…}"))
        where = f"the query {shortened(query)!r}, the document {shortened(document)!r}"
        raise InputError(f"{where}: the {number} {written} is not a number", path=path)
    try:
        return float(value)
    except OverflowError:
        return math.inf  # refused with all other infinite numbers


def _batch(
    path: str, schema: pa.Schema, queries: list[str], documents: list[str], values: list[float], row: int
) -> pa.RecordBatch:
    try:
        arrays = [pa.array(queries, pa.string()), pa.array(documents, pa.string()), pa.array(values, pa.float64())]
    except UnicodeEncodeError as error:
        raise InputError("an id holds half a character (a lone surrogate such as \\ud83d)", path=path) from error
    for name, array in zip(("query id", "document id"), arrays[:2], strict=True):
        for bad, fault in ids.faults(array):
            if bad.any():
                raise InputError(f"the {name} {shortened(array[int(bad.argmax())].as_py())!r} {fault}", path=path)
    line = pa.array(range(row, row + len(values)), pa.int64())
    return pa.RecordBatch.from_arrays([*arrays, line], schema=columns.with_line(schema))
