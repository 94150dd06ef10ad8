"""Parquet files as rows, as a load job takes them."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support.strict_bigquery.faults import Refusal
from support.strict_bigquery.tables import Row

ARROW = {
    "STRING": pa.types.is_string,
    "INTEGER": pa.types.is_integer,
    "FLOAT": pa.types.is_floating,
    "BOOLEAN": pa.types.is_boolean,
    "TIMESTAMP": lambda kind: pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz == "UTC",
    "RECORD": pa.types.is_struct,
}


def matching_files(uris: Iterable[str], root: Path | None) -> list[bytes]:
    """The contents of files in Cloud Storage; a star matches any characters.

    Raises:
        Refusal: there are none.
    """
    contents = []
    for uri in uris:
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        if root is None or not uri.startswith("gs://") or uri.count("*") > 1:
            raise Refusal("invalid", f"Cannot read {uri}")
        paths = sorted((root / bucket).glob(name)) if "*" in name else [root / bucket / name]
        if not paths or not all(path.is_file() for path in paths):
            raise Refusal("notFound", f"Not found: URI {uri}")
        contents += [path.read_bytes() for path in paths]
    return contents


def rows_of(contents: Iterable[bytes], columns: Sequence[Mapping[str, Any]], *, lists: bool) -> list[Row]:
    """The rows of Parquet files.

    Args:
        contents: contents of the files.
        columns: columns of the table.
        lists: whether the Parquet LIST type is understood.

    Raises:
        Refusal: they do not fit.
    """
    rows = []
    for content in contents:
        try:
            table = pq.read_table(io.BytesIO(content))
        except pa.ArrowInvalid as error:
            raise Refusal("invalid", f"Input file is not in Parquet format: {error}") from error
        check(table.schema, columns, lists=lists)
        rows += [complete(row, columns) for row in table.to_pylist()]
    return rows


def check(fields: Iterable[pa.Field], columns: Sequence[Mapping[str, Any]], *, lists: bool, path: str = "") -> None:
    """Hold the columns of a file against those of a table.

    Raises:
        Refusal: one is unknown, of another type, or missing.
    """
    by_name = {column["name"]: column for column in columns}
    fields = list(fields)
    for field in fields:
        name = f"{path}{field.name}"
        if field.name not in by_name:
            raise Refusal("invalid", f"Provided Schema does not match the file: no such field: {name}")
        column, kind = by_name[field.name], field.type
        if pa.types.is_list(kind) != (column.get("mode") == "REPEATED") or (pa.types.is_list(kind) and not lists):
            raise Refusal("invalid", f"Field {name} is {kind} in the file, and {column} in the table")
        kind = kind.value_type if pa.types.is_list(kind) else kind
        if not ARROW[column["type"]](kind):
            raise Refusal("invalid", f"Field {name} is {kind} in the file, and {column['type']} in the table")
        if pa.types.is_struct(kind):
            check(kind, column["fields"], lists=lists, path=f"{name}.")
    for name in set(by_name) - {field.name for field in fields}:
        if by_name[name].get("mode") == "REQUIRED":
            raise Refusal("invalid", f"Required field {path}{name} is missing in the file")


def complete(row: Mapping[str, Any], columns: Sequence[Mapping[str, Any]]) -> Row:
    """A row with all columns of the table.

    Raises:
        Refusal: a value is missing.
    """
    whole = {}
    for column in columns:
        name, mode, value = column["name"], column.get("mode", "NULLABLE"), row.get(column["name"])
        items = value or [] if mode == "REPEATED" else [value]
        if any(item is None for item in items) and mode != "NULLABLE":
            raise Refusal("invalid", f"Only optional fields can be set to NULL. Field: {name}")
        if column["type"] == "RECORD":
            items = [None if item is None else complete(item, column["fields"]) for item in items]
        whole[name] = items if mode == "REPEATED" else items[0]
    return whole
