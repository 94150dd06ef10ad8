"""Files of `deploy/` that are generated from the tables and views; `make deploy-files` writes them after a change.

    deploy/terraform/schemas     the columns of every table
    deploy/duckdb/views.sql      the views in DuckDB's dialect (`views`)
    deploy/looker/columns…       LookML of the columns; views written by hand extend it
    deploy/terraform/alerts      the scheduled queries of `deploy/alerts`, which raise alerts

BigQuery prunes partitions only by constants that reach the scan of a table. A filter on a view may not reach it: a
window over earlier runs stops it. So dashboards and alerts run the views' queries over tables that are already
bounded: explores by the filter `horizon.days`, alerts by `@run_time`, BigQuery's parameter of scheduled queries. An
alert has one column, `message`, and a row for each reason; Terraform fills in the values of its other parameters.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from rankbeam.transforms.clients.bigquery.schemas import PARTITIONED_BY, columns_of
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables

if TYPE_CHECKING:
    from sqlglot import exp

FOR_LOOKER = views.FOLDER / "looker" / "columns.view.lkml"
"""Its views are named after a table or view, with the suffix `_columns`."""

_HEAD = """\
# Made from the tables and views by `make deploy-files`; do not edit. The views in
# views/ extend these with keys, measures and descriptions, and hide or show columns.
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
}  # lines for columns that mean the same in every view
FOR_ALERTS = views.FOLDER / "terraform" / "alerts"
SOURCES = views.FOLDER / "alerts"
FOR_TERRAFORM = views.FOLDER / "terraform" / "schemas"
UNBOUNDED = "runs"
"""The table that `written_out` reads as a whole: it is small, and shows which run is the latest, however old."""

_ALERT_DAYS = "90"
_SETTINGS = re.compile(r"@(?!run_time\b)(\w+)")
_ALERT_HEAD = "-- Made from deploy/alerts by `make deploy-files`; do not edit. Terraform fills in the settings.\n"


def contents() -> dict[Path, str]:
    return {**terraform_schemas(), views.FOR_DUCKDB: views.transpile_views(), FOR_LOOKER: for_looker(), **alerts()}


def terraform_schemas() -> dict[Path, str]:
    return {
        FOR_TERRAFORM / f"{name}.json": json.dumps(columns_of(schema), indent=2) + "\n"
        for name, schema in tables.TABLES.items()
    }


def for_looker() -> str:
    """LookML for the tables and views that the project's views extend; numbers are hidden, since measures show them."""
    by_hand = "".join(path.read_text(encoding="utf-8") for path in sorted(views.FOLDER.glob("looker/views/*.lkml")))
    extended = sorted(set(_EXTENDED.findall(by_hand)))
    with duckdb.connect() as connection:
        for name, schema in tables.TABLES.items():
            connection.from_arrow(schema.empty_table()).create(name)
        connection.execute(views.for_duckdb())
        columns = {name: connection.execute(f"DESCRIBE {name}").fetchall() for name in extended}
    trees = views.syntax_trees()
    return _HEAD + "".join(
        _view(name, {column: kind for column, kind, *_ in columns[name]}, trees) for name in extended
    )


def _view(name: str, types: dict[str, str], trees: "Mapping[str, exp.Query]") -> str:
    parts = "\n".join(part for column, kind in types.items() for part in _dimension(column, kind))
    return f"\nview: {name}_columns {{\n  extension: required\n{_source(name, trees)}\n{parts}}}\n"


def _source(name: str, trees: "Mapping[str, exp.Query]") -> str:
    """The view itself if it only reads `runs`, else its query over bounded tables."""
    read = read_by(trees[name], trees) if name in trees else {name}
    if not read & (tables.TABLES.keys() - {UNBOUNDED}):
        return f"  sql_table_name: `@{{dataset}}.{name}` ;;\n"
    scan = partial(_scan, "@{dataset}", _DAYS, _NOW)  # Looker fills in the dataset
    query = written_out(trees[name].sql("bigquery", pretty=True), read, trees, scan) if name in trees else scan(name)
    indented = "".join(f"      {line}\n" for line in query.splitlines())
    return f"  derived_table: {{\n    sql:\n{indented}    ;;\n  }}\n"


def _dimension(column: str, kind: str) -> Iterator[str]:
    if kind.startswith("TIMESTAMP"):
        yield _TIME.format(name=column.removesuffix("_at"), column=column)
    elif kind == "DATE":
        yield _lines(column, "type: date", "convert_tz: no", "datatype: date")
    elif kind in _TYPES:
        hidden = ("hidden: yes",) if kind in _NUMBERS else ()
        yield _lines(column, f"type: {_TYPES[kind]}", *_MEANINGS.get(column, ()), *hidden)
    else:  # nested values, which joins unnest
        yield _lines(column, "type: string", "hidden: yes")


def _lines(column: str, *lines: str) -> str:
    inner = "".join(f"    {line}\n" for line in (*lines, f"sql: ${{TABLE}}.{column} ;;"))
    return f"  dimension: {column} {{\n{inner}  }}\n"


def alerts() -> dict[Path, str]:
    """Templates of alert queries, with `${project}`, `${dataset}` and each query's settings."""
    import sqlglot
    from sqlglot import exp

    trees = views.syntax_trees()
    contents = {}
    for path in sorted(SOURCES.glob("*.sql")):
        text = path.read_text(encoding="utf-8")
        read = read_by(sqlglot.parse_one(text, dialect="bigquery", into=exp.Select), trees)
        whole = written_out(text, read, trees, partial(_scan, "${project}.${dataset}", _ALERT_DAYS, "@run_time"))
        contents[FOR_ALERTS / path.name] = _ALERT_HEAD + _SETTINGS.sub(r"${\1}", whole)
    return contents


def written_out(text: str, read: set[str], trees: "Mapping[str, exp.Query]", bounded: Callable[[str], str]) -> str:
    """A query over bounded tables: all tables and views that it reads (`read_by`) become common table expressions."""
    below = [*sorted(read - trees.keys()), *(name for name in trees if name in read)]
    bodies = [trees[name].sql("bigquery", pretty=True) if name in trees else bounded(name) for name in below]
    parts = ",\n".join(f"{name} AS (\n{body}\n)" for name, body in zip(below, bodies, strict=True))
    return f"WITH {parts}\n{text}"


def _scan(dataset: str, days: str, now: str, name: str) -> str:
    query = f"SELECT * FROM `{dataset}.{name}`"
    bound = f"WHERE {PARTITIONED_BY} >= TIMESTAMP_SUB({now}, INTERVAL {days} DAY)"
    return query if name == UNBOUNDED else f"{query} {bound}"


def read_by(query: "exp.Query", trees: "Mapping[str, exp.Query]") -> set[str]:
    """The names of all tables and views that a query reads, directly or indirectly."""
    from sqlglot import exp

    names = {table.name for table in query.find_all(exp.Table)} & (tables.TABLES.keys() | trees.keys())
    return names.union(*(read_by(trees[name], trees) for name in names & trees.keys()))


if __name__ == "__main__":
    for file, content in contents().items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(content, encoding="utf-8")
