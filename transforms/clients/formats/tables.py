"""Tables of BigQuery in the place of files: the same roles, column names and types as Parquet files have."""

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import pyarrow as pa

from transforms.clients.bigquery import read, read_tables
from transforms.clients.bigquery.read_source import TableSource
from transforms.clients.formats import named

_JSON = b"google:sqlType:json"


def check(path: str, role: str) -> None:
    """Refuse what cannot be read in a role, without reading it.

    Args:
        path: begins with `bigquery://`.
        role: "queries", "corpus", "qrels" or "run".

    Raises:
        InputError: it is not there, may not be read, or lacks a column.
    """
    source = TableSource.parse(path)
    named.find_columns(str(source), read_tables.describe(source).columns, named.WANTED[role])


def streams(path: str, role: str) -> Iterator[str]:
    """Open a session: the paths, at least one, of its streams; these are read as files are.

    Raises:
        InputError: as `check`.
    """
    source = TableSource.parse(path)
    yield from (stream.path for stream in read.streams(source, _selected(source, role)))


def read_rows(path: str, role: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read the wanted columns of a table, or of one stream, cast to a schema.

    Args:
        path: of a table, a query, or a stream.
        role: "qrels" or "run".
        schema: as for `named.mapped`; `line` counts inside the stream.

    Raises:
        InputError: it cannot be read, or holds a value that cannot be used.
    """
    for names, batches in found(path, role):
        yield from named.mapped(str(TableSource.parse(path)), batches, names, schema)


def found(path: str, role: str) -> Iterator[tuple[Mapping[str, str], Iterator[pa.RecordBatch]]]:
    """The columns of a table that are wanted, by our names, and its batches; nothing where it has no rows.

    Raises:
        InputError: it cannot be read.
    """
    source = TableSource.parse(path)
    selected = [] if source.stream is not None else _selected(source, role)
    batches = read.batches(source, selected)
    if (first := next(batches, None)) is not None:
        yield named.find_columns(str(source), first.schema.names, named.WANTED[role]), chain([first], batches)


def plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as Python values; what BigQuery calls JSON, and Arrow a text, is parsed."""
    rows: list[dict[str, Any]] = batch.to_pylist()
    for field in batch.schema:
        if (field.metadata or {}).get(b"ARROW:extension:name") == _JSON:
            for row in rows:
                row[field.name] = None if row[field.name] is None else json.loads(row[field.name])
    return rows


def _selected(source: TableSource, role: str) -> list[str]:
    """The columns to read; all of texts, whose other columns are attributes."""
    columns = read_tables.describe(source).columns
    names = named.find_columns(str(source), columns, named.WANTED[role])
    return [] if named.WANTED[role] is named.TEXTS else list(names.values())
