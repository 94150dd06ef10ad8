"""Readers of queries and corpora: fewer rows, with text and attributes."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from transforms.clients import files
from transforms.clients.bigquery.read_source import shown
from transforms.clients.formats import named, parquet, tables
from transforms.clients.formats.recognise import Format, recognise
from transforms.records import columns
from transforms.records.errors import InputError

_BATCH_ROWS = 10_000


@dataclass(frozen=True)
class Entry:
    """A query or a document as its file has it.

    Attributes:
        id: the identifier.
        title: the title; empty for queries.
        text: the text; may be empty.
        attributes: everything else, as text.
        line: where it stood, from 1.
    """

    id: str
    title: str
    text: str
    attributes: Mapping[str, str]
    line: int


def read_queries(path: str) -> Iterator[pa.RecordBatch]:
    """Read queries: BEIR's JSON lines, TREC topics (id, tab, text), Parquet, or a table of BigQuery.

    Yields:
        Batches of `columns.QUERIES` with the line of each row.

    Raises:
        InputError: the file, or a line of it, is not what it should be.
    """
    entries = read_entries(path, "queries")
    while part := list(islice(entries, _BATCH_ROWS)):
        arrays = [
            [entry.id for entry in part],
            [entry.text for entry in part],
            [[{"name": name, "value": entry.attributes[name]} for name in sorted(entry.attributes)] for entry in part],
            [entry.line for entry in part],
        ]
        schema = columns.with_line(columns.QUERIES)
        yield pa.RecordBatch.from_arrays(
            [pa.array(values, field.type) for values, field in zip(arrays, schema, strict=True)], schema=schema
        )


def read_entries(path: str, role: str) -> Iterator[Entry]:
    """Read queries or documents one by one.

    Args:
        path: the file.
        role: "queries" or "corpus".

    Raises:
        InputError: the file, or a line of it, is not what it should be.
    """
    found = recognise(path, role)
    if found is Format.PARQUET:
        yield from _from_parquet(path)
    elif found is Format.BIGQUERY:
        yield from _from_bigquery(path, role)
    elif found is Format.JSON_LINES:
        for line, text in _lines(path):
            yield _from_json(path, line, text)
    else:
        for line, text in _lines(path):
            yield _from_tabs(path, line, text)


def _lines(path: str) -> Iterator[tuple[int, str]]:
    number = 0
    for block in files.read_blocks(path):
        for line in block.split(b"\n")[: None if not block.endswith(b"\n") else -1]:
            number += 1
            if not line.strip():
                continue
            try:
                yield number, line.decode("utf-8").rstrip("\r")
            except UnicodeDecodeError as error:
                problem = "is not UTF-8; convert the file, for example with iconv"
                raise InputError(problem, path=path, line=number) from error


def _from_tabs(path: str, line: int, text: str) -> Entry:
    name, tab, rest = text.partition("\t")
    if not tab or not name.strip():
        raise InputError("expected id, tab, text", path=path, line=line)
    return Entry(name.strip(), "", rest.strip(), {}, line)


def _from_json(path: str, line: int, text: str) -> Entry:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"is not valid JSON: {error.msg} at column {error.colno}", path=path, line=line) from error
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON object, found {type(value).__name__}", path=path, line=line)
    id_name = next((name for name in named.ID_NAMES if value.get(name) not in (None, "")), None)
    text_name = next((name for name in named.TEXT_NAMES if name in value), None)
    if id_name is None or text_name is None:
        missing = "id (_id)" if id_name is None else "text"
        problem = f"the object has no {missing}; it has: {', '.join(value) or 'nothing'}"
        raise InputError(problem, path=path, line=line)
    rest = {name: item for name, item in value.items() if name not in (id_name, text_name)}
    entry = _entry(as_text(value[id_name]), as_text(value[text_name]), rest, line)
    try:
        "".join([entry.id, entry.title, entry.text, *entry.attributes, *entry.attributes.values()]).encode()
    except UnicodeEncodeError as error:
        raise InputError("holds half a character (a lone surrogate such as \\ud83d)", path=path, line=line) from error
    return entry


def _entry(name: str, text: str, rest: Mapping[str, Any], line: int) -> Entry:
    """An entry whose attributes are those under `metadata` and all other keys but the title."""
    metadata = rest.get("metadata")
    others = {key: item for key, item in rest.items() if key not in ("title", "metadata")}
    others |= metadata if isinstance(metadata, dict) else {}
    attributes = {key: as_text(item) for key, item in others.items() if item is not None}
    return Entry(name, as_text(rest.get("title")), text, attributes, line)


def _from_parquet(path: str) -> Iterator[Entry]:
    with parquet.open_file(path) as file:
        names = named.find_columns(path, file.schema_arrow.names, named.WANTED["queries"])
        line = 0
        try:
            for entry in _from_columns(path, file.iter_batches(batch_size=_BATCH_ROWS), names):
                line = entry.line
                yield entry
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"row group cannot be read ({error})", path=path, line=line + 1) from error


def _from_bigquery(path: str, role: str) -> Iterator[Entry]:
    for names, batches in tables.found(path, role):
        yield from _from_columns(shown(path), batches, names)


def _from_columns(path: str, batches: Iterable[pa.RecordBatch], names: Mapping[str, str]) -> Iterator[Entry]:
    line = 0
    for batch in batches:
        ids = named.cast(path, batch[names["id"]], pa.field("_id", pa.string()), line)
        texts = pc.fill_null(named.converted(path, batch[names["text"]], pa.field("text", pa.string()), line), "")
        rest = tables.plain(batch.drop_columns(list(names.values())))
        for name, text, others in zip(ids.to_pylist(), texts.to_pylist(), rest, strict=True):
            line += 1
            yield _entry(name, text, others, line)


def as_text(value: object) -> str:
    """A value as text: texts as they are, nothing as nothing, dates and decimal numbers as people write them.

    All else is JSON.

    >>> as_text("de"), as_text(None), as_text(3), as_text(True), as_text(["a"])
    ('de', '', '3', 'true', '["a"]')
    >>> as_text(date(2026, 1, 2)), as_text(Decimal("1.500000000")), as_text(Decimal("200"))
    ('2026-01-02', '1.5', '200')
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, date | time):
        return str(value)
    if isinstance(value, Decimal):
        whole, point, fraction = f"{value:f}".partition(".")
        return f"{whole}{point}{fraction}".rstrip("0").rstrip(".") if point else whole
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
