"""Tables of BigQuery in the place of files: the same roles, column names and types as Parquet files have.

Names of columns are the same in upper and lower case, as for BigQuery itself. Google's client is imported where a table
is read: files are read while that, and Beam, are still being imported.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from rankbeam.transforms.clients.bigquery.read_source import TableSource
from rankbeam.transforms.clients.formats import named

_JSON = b"google:sqlType:json"
_TEXTS_MORE = ("title", "metadata")
"""Columns that `texts` knows, besides those that it must have."""


def check(path: str, role: str) -> None:
    """Refuse what cannot be read in a role, without reading it.

    Args:
        path: begins with `bigquery://`.
        role: "queries", "corpus", "qrels" or "run".

    Raises:
        InputError: it is not there, may not be read, or lacks a column.
    """
    from rankbeam.transforms.clients.bigquery import read_tables

    source = TableSource.parse(path)
    _named(source, read_tables.describe(source).columns, role)


def streams(path: str, role: str) -> Iterator[str]:
    """Open a session: the paths, at least one, of its streams; these are read as files are.

    Raises:
        InputError: as `check`.
    """
    from rankbeam.transforms.clients.bigquery import read

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
    from rankbeam.transforms.clients.bigquery import read

    source = TableSource.parse(path)
    selected = [] if source.stream is not None else _selected(source, role)
    batches = read.batches(source, selected)
    if (first := next(batches, None)) is not None:
        yield _named(source, first.schema.names, role), map(_as_known, chain([first], batches))


def column(source: TableSource, role: str, name: str) -> str:
    """What a table calls the column that we call by a name, one of `named.WANTED[role]`."""
    from rankbeam.transforms.clients.bigquery import read_tables

    return _named(source, read_tables.describe(source).columns, role)[name]


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
    from rankbeam.transforms.clients.bigquery import read_tables

    names = _named(source, read_tables.describe(source).columns, role)
    return [] if named.WANTED[role] is named.TEXTS else list(names.values())


def _named(source: TableSource, columns: Sequence[str], role: str) -> dict[str, str]:
    return named.find_columns(str(source), columns, named.WANTED[role], any_case=True)


def _as_known(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the optional columns of texts as they are known."""
    names = [name.lower() if name.lower() in _TEXTS_MORE else name for name in batch.schema.names]
    return batch if names == batch.schema.names else batch.rename_columns(names)
