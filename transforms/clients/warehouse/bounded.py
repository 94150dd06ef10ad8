"""Queries over the views, written out over the tables: each table is read within a constant bound on `started_at`.

BigQuery prunes partitions only by constants that reach the scan of a table, and a filter on a view need not: a window
over earlier runs stops it. So dashboards and alerts read the views' own queries over bounded tables, not the views.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rankbeam.transforms.clients.bigquery.schemas import PARTITIONED_BY
from rankbeam.transforms.records import tables

if TYPE_CHECKING:
    from sqlglot import exp

UNBOUNDED = "runs"
"""The table that is read as a whole: it is small, and says which run is the latest, however old."""


def written_out(
    text: str, read: set[str], trees: "Mapping[str, exp.Query]", table: Callable[[str], str], days: str, now: str
) -> str:
    """A query with all views that it reads, at any depth, as common table expressions over bounded tables.

    Args:
        text: the query, which reads tables and views by their bare names.
        read: the names of all tables and views that it reads, at any depth (`read_by`).
        trees: the views' queries by name, in the order of `views.parsed`.
        table: the text for a table's name.
        days: the text for the number of days.
        now: the text for the time from which they are counted; a constant to BigQuery, such as a parameter.
    """
    below = [*sorted(read - trees.keys()), *(name for name in trees if name in read)]
    bodies = [
        trees[name].sql("bigquery", pretty=True) if name in trees else scan(name, table, days, now) for name in below
    ]
    parts = ",\n".join(f"{name} AS (\n{body}\n)" for name, body in zip(below, bodies, strict=True))
    return f"WITH {parts}\n{text}"


def scan(name: str, table: Callable[[str], str], days: str, now: str) -> str:
    """The query that reads a table within the bound."""
    query = f"SELECT * FROM {table(name)}"  # noqa: S608  a text that is written into files
    bound = f"WHERE {PARTITIONED_BY} >= TIMESTAMP_SUB({now}, INTERVAL {days} DAY)"
    return query if name == UNBOUNDED else f"{query} {bound}"


def read_by(query: "exp.Query", trees: "Mapping[str, exp.Query]") -> set[str]:
    """The names of all tables and views that a query reads, at any depth."""
    from sqlglot import exp

    names = _ours((table.name for table in query.find_all(exp.Table)), trees)
    return names.union(*(read_by(trees[name], trees) for name in names & trees.keys()))


def _ours(names: Iterable[str], trees: "Mapping[str, exp.Query]") -> set[str]:
    return {*names} & (tables.TABLES.keys() | trees.keys())
