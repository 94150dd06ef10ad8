"""The columns of tables and views, found without a server: a column that does not exist is an error here."""

from collections.abc import Mapping
from functools import cache

import pyarrow as pa
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables

SCALARS = {
    pa.string(): "STRING",
    pa.float64(): "FLOAT64",
    pa.int64(): "INT64",
    pa.int32(): "INT64",
    pa.bool_(): "BOOL",
    pa.timestamp("us", "UTC"): "TIMESTAMP",
}

Columns = dict[str, dict[str, str]]
"""Table → column → type in GoogleSQL."""


def table_columns() -> Columns:
    """Those of the tables."""
    return {name: {field.name: google_type(field.type) for field in schema} for name, schema in tables.TABLES.items()}


def google_type(kind: pa.DataType) -> str:
    """GoogleSQL's name of an Arrow type.

    >>> google_type(pa.list_(pa.struct([("rank", pa.int32())])))
    'ARRAY<STRUCT<rank INT64>>'
    """
    if pa.types.is_list(kind):
        return f"ARRAY<{google_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name} {google_type(field.type)}' for field in kind)}>"
    return SCALARS[kind]


def resolved(query: exp.Expression, known: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The columns that a query yields, with their types.

    Raises:
        sqlglot.errors.OptimizeError: a column is in none of its tables.
        LookupError: a field is in no struct, or a type cannot be told.
    """
    schema = {name: dict(columns) for name, columns in known.items()}
    typed = annotate_types(qualify(query.copy(), dialect="bigquery", schema=schema), schema=schema, dialect="bigquery")
    unknown = [node.sql() for node in typed.find_all(exp.Column, exp.Dot) if node.is_type(exp.DataType.Type.UNKNOWN)]
    columns = {column.alias_or_name: column.type.sql("bigquery") for column in typed.selects}
    if unknown or "UNKNOWN" in columns.values():
        raise LookupError(f"of no known type: {unknown or columns}")
    return columns


def with_views(known: Columns) -> Columns:
    """The given tables, and all views over them."""
    columns = dict(known)
    for name, query in views.syntax_trees().items():
        columns[name] = resolved(query, columns)
    return columns


@cache
def all_columns() -> Columns:
    """Those of all tables and views."""
    return with_views(table_columns())
