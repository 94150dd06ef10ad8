"""Tables of BigQuery instead of files, with the same roles, column names and types as Parquet files.

Names of columns ignore case, as in BigQuery itself. Google's client is imported only where a table is read: meanwhile
other threads already read files.
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
"""Optional columns that `texts` knows."""


def check(path: str, role: str) -> None:
    """Refuse a table that does not fit its role, without reading its rows."""
    from rankbeam.transforms.clients.bigquery import read

    source = TableSource.parse(path)
    _named(source, read.describe(source).columns, role)


def streams(path: str, role: str) -> Iterator[str]:
    """Open a read session; yield the paths of its streams, at least one, which are read like files."""
    from rankbeam.transforms.clients.bigquery import read

    source = TableSource.parse(path)
    columns = _selected(source, role) if role in named.COLUMN_NAMES else []
    yield from (stream.path for stream in read.streams(source, columns))


def read_rows(path: str, role: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read the wanted columns of a table, or of one stream, cast to a schema."""
    for names, batches in named_batches(path, role):
        yield from named.mapped(str(TableSource.parse(path)), batches, names, schema)


def named_batches(path: str, role: str) -> Iterator[tuple[Mapping[str, str], Iterator[pa.RecordBatch]]]:
    """The names of a table's wanted columns, by our names, and its batches; yields nothing for a table without rows."""
    from rankbeam.transforms.clients.bigquery import read

    source = TableSource.parse(path)
    selected = [] if source.stream is not None else _selected(source, role)
    batches = read.batches(source, selected)
    if (first := next(batches, None)) is not None:
        columns = first.schema.names
        names = _named(source, columns, role) | named.optional_columns(columns, role, any_case=True)
        yield names, map(_with_known_names, chain([first], batches))


def column(source: TableSource, role: str, name: str) -> str:
    """The table's own name of a column; `name` is one of `named.COLUMN_NAMES[role]`."""
    from rankbeam.transforms.clients.bigquery import read

    return _named(source, read.describe(source).columns, role)[name]


def plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as Python values; BigQuery's JSON columns, which are strings in Arrow, are parsed."""
    rows: list[dict[str, Any]] = batch.to_pylist()
    for field in batch.schema:
        if (field.metadata or {}).get(b"ARROW:extension:name") == _JSON:
            for row in rows:
                row[field.name] = None if row[field.name] is None else json.loads(row[field.name])
    return rows


def _selected(source: TableSource, role: str) -> list[str]:
    """The columns to read; an empty list, for texts, means all: their other columns are attributes."""
    from rankbeam.transforms.clients.bigquery import read

    columns = read.describe(source).columns
    names = _named(source, columns, role) | named.optional_columns(columns, role, any_case=True)
    return [] if named.COLUMN_NAMES[role] is named.TEXTS else list(names.values())


def _named(source: TableSource, columns: Sequence[str], role: str) -> dict[str, str]:
    return named.find_columns(str(source), columns, named.COLUMN_NAMES[role], any_case=True)


def _with_known_names(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, with the names of optional columns of texts in lower case."""
    names = [name.lower() if name.lower() in _TEXTS_MORE else name for name in batch.schema.names]
    return batch if names == batch.schema.names else batch.rename_columns(names)
