"""LookML of the columns of tables and views, from the Arrow schemas and the views; what is written by hand extends it.

Explores read derived tables instead of the views, bounded by the filter `horizon.days` (`bounded`).

`make deploy-files` writes the file after a change.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import duckdb

from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables

if TYPE_CHECKING:
    from sqlglot import exp

FOR_LOOKER = views.FOLDER / "looker" / "columns.view.lkml"
"""Each of its views has the name of a table or view, and `_columns`."""

_HEAD = """\
# Made from the tables and views by `make deploy-files`; do not edit. The views in
# views/ extend these: there are keys, measures, descriptions, and what is hidden or shown.
"""
_EXTENDED = re.compile(r"extends: \[(\w+)_columns\]")
_NUMBERS = ("BIGINT", "HUGEINT", "INTEGER", "DOUBLE")
_TYPES = {"VARCHAR": "string", "BOOLEAN": "yesno"} | dict.fromkeys(_NUMBERS, "number")
_DAYS, _NOW = "{% parameter horizon.days %}", "CURRENT_TIMESTAMP()"
_TIME = """\
  dimension_group: {name} {{
    type: time
    timeframes: [raw, time, hour, date, week, month]
    datatype: timestamp
    sql: ${{TABLE}}.{column} ;;
  }}
"""
_MEANINGS = {
    "is_latest": ('label: "Is latest run"', 'description: "The latest run of its experiment"'),
    "dialect": ('description: "The tool by whose rules it is scored; empty for runs of older releases"',),
}
"""Lines of columns that mean the same in every view."""


def for_looker() -> str:
    """The LookML of the tables and views that a view of the project extends; numbers are hidden: measures show them."""
    by_hand = "".join(path.read_text(encoding="utf-8") for path in sorted(views.FOLDER.glob("looker/views/*.lkml")))
    extended = sorted(set(_EXTENDED.findall(by_hand)))
    with duckdb.connect() as connection:
        _create_empty(connection)
        columns = {name: connection.execute(f"DESCRIBE {name}").fetchall() for name in extended}
    trees = views.parsed()
    return _HEAD + "".join(
        _view(name, {column: kind for column, kind, *_ in columns[name]}, trees) for name in extended
    )


def _create_empty(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all tables, without rows, and the views over them."""
    for name, schema in tables.TABLES.items():
        connection.from_arrow(schema.empty_table()).create(name)
    connection.execute(views.for_duckdb())


def _view(name: str, types: dict[str, str], trees: "Mapping[str, exp.Query]") -> str:
    parts = "\n".join(part for column, kind in types.items() for part in _dimension(column, kind))
    return f"\nview: {name}_columns {{\n  extension: required\n{_source(name, trees)}\n{parts}}}\n"


def _source(name: str, trees: "Mapping[str, exp.Query]") -> str:
    """The view itself if it reads only `runs`, else its query over bounded tables."""
    read = views.read_by(trees[name], trees) if name in trees else {name}
    if not read & (tables.TABLES.keys() - {views.UNBOUNDED}):
        return f"  sql_table_name: `@{{dataset}}.{name}` ;;\n"
    query = (
        views.written_out(trees[name].sql("bigquery", pretty=True), read, trees, _table, _DAYS, _NOW)
        if name in trees
        else views.scan(name, _table, _DAYS, _NOW)
    )
    indented = "".join(f"      {line}\n" for line in query.splitlines())
    return f"  derived_table: {{\n    sql:\n{indented}    ;;\n  }}\n"


def _table(name: str) -> str:
    return f"`@{{dataset}}.{name}`"  # Looker fills in the dataset


def _dimension(column: str, kind: str) -> Iterator[str]:
    if kind.startswith("TIMESTAMP"):
        yield _TIME.format(name=column.removesuffix("_at"), column=column)
    elif kind == "DATE":
        yield _lines(column, "type: date", "convert_tz: no", "datatype: date")
    elif kind in _TYPES:
        hidden = ("hidden: yes",) if kind in _NUMBERS else ()
        yield _lines(column, f"type: {_TYPES[kind]}", *_MEANINGS.get(column, ()), *hidden)
    else:  # nested values, which a join unnests
        yield _lines(column, "type: string", "hidden: yes")


def _lines(column: str, *lines: str) -> str:
    inner = "".join(f"    {line}\n" for line in (*lines, f"sql: ${{TABLE}}.{column} ;;"))
    return f"  dimension: {column} {{\n{inner}  }}\n"


if __name__ == "__main__":
    FOR_LOOKER.write_text(for_looker(), encoding="utf-8")
