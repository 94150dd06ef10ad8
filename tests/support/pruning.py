"""Bytes that a query reads of partitioned tables, by a plan as careful as BigQuery's guarantees."""

from collections import Counter
from collections.abc import Iterator

from sqlglot import exp

from rankbeam.transforms.clients.bigquery import schemas
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables

HELD_DAYS, PARTITION_BYTES = 400, 1000
IN_DATASET = tables.TABLES.keys() | views.sources().keys()
OF_RUNS = {"runs", "run_history", "cost"}
"""The table, and the views that read no other one."""


def scanned(query: exp.Expression) -> Counter[str]:
    """Bytes that a query reads of each table, if every day has a partition of so many bytes.

    Only a constant bound in the scan's own WHERE counts, as BigQuery guarantees no more.
    """
    read: Counter[str] = Counter()
    for table, name in scans(query):
        read[name] += PARTITION_BYTES * min(HELD_DAYS, _days(table))
    return read


def scans(query: exp.Expression) -> Iterator[tuple[exp.Table, str]]:
    """Yield each scan of a table, with the table's name."""
    own = {part.alias for part in query.find_all(exp.CTE, exp.Subquery)}
    for table in query.find_all(exp.Table):
        if table.db == "main" or (table.name in IN_DATASET and table.name not in own):
            yield table, "runs" if table.name in OF_RUNS else table.name


def _days(table: exp.Table) -> int:
    select = table.parent_select
    where = None if select is None or select.args.get("joins") else select.args.get("where")
    for bound in where.find_all(exp.GTE) if where else ():
        if (
            bound.parent is where
            and bound.left.name == schemas.PARTITIONED_BY
            and isinstance(bound.right, exp.TimestampSub)
        ):
            assert isinstance(bound.right.this, exp.CurrentTimestamp | exp.Parameter)
            assert bound.right.unit.name == "DAY"
            return int(bound.right.expression.name)
    return HELD_DAYS
