"""Columns of BigQuery's tables from the Arrow schemas, and their differences from an existing table.

Columns are written as BigQuery's REST interface has them: `{"name": …, "type": …, "mode": …, "fields": […]}`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

Column = dict[str, Any]

PARTITIONED_BY = "started_at"
_CLUSTERED_BY = ("run_id", "experiment", "config_id")
_OTHER_NAMES = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "BOOL": "BOOLEAN", "STRUCT": "RECORD"}


def columns_of(schema: pa.Schema) -> list[Column]:
    return [_column(field) for field in schema]


def clustering_of(schema: pa.Schema) -> list[str]:
    return [name for name in _CLUSTERED_BY if name in schema.names]


def merge_columns(existing: Sequence[Column], columns: Sequence[Column]) -> list[Column]:
    """The columns of an existing table, extended so that it takes rows of these columns, at every depth.

    Missing columns follow the table's own, and are NULLABLE; a column that is REQUIRED there and NULLABLE here becomes
    NULLABLE. No column becomes REQUIRED: rows of earlier runs may have no value.

    >>> merge_columns([{"name": "n", "type": "STRING", "mode": "REQUIRED"}], [{"name": "n", "type": "STRING"}])
    [{'name': 'n', 'type': 'STRING', 'mode': 'NULLABLE'}]
    """
    theirs = {_key(column): column for column in existing}
    ours = {_key(column): column for column in columns}
    extended = [_relax_column(column, ours[name]) if name in ours else column for name, column in theirs.items()]
    return extended + [_nullable(column) for name, column in ours.items() if name not in theirs]


def differences(existing: Sequence[Column], columns: Sequence[Column], prefix: str = "") -> Iterator[str]:
    """The reason why rows of some columns do not fit into an existing table, not even when columns are added.

    The order of columns is not a difference, nor are columns that allow more than needed, nor REQUIRED ones that
    `merge_columns` relaxes.

    >>> list(differences([{"name": "n", "type": "STRING"}], [{"name": "n", "type": "INTEGER", "mode": "REQUIRED"}]))
    ['n is STRING there, and INTEGER here']
    """
    theirs = {_key(column): column for column in existing}
    ours = {_key(column): column for column in columns}
    for name, column in ours.items():
        there = theirs.get(name)
        path = f"{prefix}{column['name']}"
        if there is None:
            if _mode(column) == "REQUIRED":
                yield f"{path} is missing there, and cannot be added because it is REQUIRED here"
        else:
            yield from _difference(there, column, path)
    for name, column in theirs.items():
        if name not in ours and _mode(column) == "REQUIRED":
            yield f"{prefix}{column['name']} is REQUIRED there, and unknown here"


def _difference(there: Column, here: Column, path: str) -> Iterator[str]:
    modes = _mode(there), _mode(here)
    if _type(there) != _type(here):
        yield f"{path} is {_type(there)} there, and {_type(here)} here"
    elif "REPEATED" in modes and modes[0] != modes[1]:
        yield f"{path} is {modes[0]} there, and {modes[1]} here"
    elif here.get("fields"):
        yield from differences(there.get("fields", ()), here["fields"], f"{path}.")


def _relax_column(there: Column, here: Column) -> Column:
    """An existing column, extended to accept the values of our column of the same type."""
    column = dict(there)
    if (_mode(there), _mode(here)) == ("REQUIRED", "NULLABLE"):
        column["mode"] = "NULLABLE"
    if there.get("fields"):
        column["fields"] = merge_columns(there["fields"], here.get("fields", ()))
    return column


def _nullable(column: Column) -> Column:
    """A column that can be added to a table with rows: BigQuery takes no REQUIRED one, at any depth."""
    mode = "REPEATED" if _mode(column) == "REPEATED" else "NULLABLE"
    fields = {"fields": [_nullable(column_) for column_ in column["fields"]]} if column.get("fields") else {}
    return {**column, "mode": mode, **fields}


def _column(field: pa.Field) -> Column:
    kind, mode = field.type, "NULLABLE" if field.nullable else "REQUIRED"
    if pa.types.is_list(kind):
        kind, mode = kind.value_type, "REPEATED"
    column = {"name": field.name, "type": _type_of(kind), "mode": mode}
    return {**column, "fields": [_column(item) for item in kind]} if pa.types.is_struct(kind) else column


def _type_of(kind: pa.DataType) -> str:
    tests = {
        "STRING": pa.types.is_string,
        "INTEGER": pa.types.is_integer,
        "FLOAT": pa.types.is_floating,
        "BOOLEAN": pa.types.is_boolean,
        "TIMESTAMP": pa.types.is_timestamp,
        "RECORD": pa.types.is_struct,
    }
    name = next((name for name, test in tests.items() if test(kind)), None)
    if name is None:
        raise TypeError(f"BigQuery has no type for {kind}")
    return name


def _key(column: Column) -> str:
    return str(column["name"]).lower()  # as BigQuery compares names


def _type(column: Column) -> str:
    kind = str(column["type"])
    return _OTHER_NAMES.get(kind, kind)


def _mode(column: Column) -> str:
    return str(column.get("mode") or "NULLABLE")
