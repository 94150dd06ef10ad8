"""The views over the tables: GoogleSQL in `deploy/bigquery`, one file each, and sqlglot's translation for DuckDB.

sqlglot takes a third of a second to import and to translate. To spare every run that time, the translation is kept in
`deploy/duckdb`, with a hash of its source; if the hash does not match, the views are translated again.
`make deploy-files` writes the file after a change.

BigQuery prunes partitions only by constants that reach the scan of a table, and a filter on a view need not: a window
over earlier runs stops it. So dashboards and alerts read the views' own queries over tables that are already bounded.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from rankbeam.transforms.clients.bigquery.errors import BigQueryError, of_job
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.schemas import PARTITIONED_BY
from rankbeam.transforms.clients.bigquery.session import Session
from rankbeam.transforms.clients.bigquery.tables import ensure
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import RankbeamError

if TYPE_CHECKING:
    from sqlglot import exp

FOLDER = Path(__file__).parents[3] / "deploy"
"""The folder of the views, beside this package both in the repository and where it is installed."""

FOR_DUCKDB = FOLDER / "duckdb" / "views.sql"

UNBOUNDED = "runs"
"""The table that `written_out` reads as a whole: it is small, and says which run is the latest, however old."""


@cache
def sources() -> Mapping[str, str]:
    """The GoogleSQL of every view by name; it refers to tables and views by their bare names."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((FOLDER / "bigquery").glob("*.sql"))}


def about(name: str) -> str:
    """The question that a view answers: the first line of its file.

    >>> about("query_changes").partition("?")[0]
    'Which queries got better or worse since the previous run with a value of the metric'
    """
    lines = sources()[name].splitlines()
    first = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    return " ".join(line.removeprefix("--").strip() for line in lines[:first])


def parsed() -> "dict[str, exp.Query]":
    """The syntax tree of every view, without comments; a view follows those that it reads from."""
    import sqlglot
    from sqlglot import exp

    trees = {name: sqlglot.parse_one(text, dialect="bigquery", into=exp.Select) for name, text in sources().items()}
    for node in (node for tree in trees.values() for node in tree.walk()):
        node.pop_comments()
    read = {name: {table.name for table in tree.find_all(exp.Table)} & trees.keys() for name, tree in trees.items()}
    return {name: trees[name] for name in TopologicalSorter(read).static_order()}


def for_duckdb() -> str:
    """The statements that make all views in a DuckDB file that holds the tables."""
    stored = FOR_DUCKDB.read_text(encoding="utf-8") if FOR_DUCKDB.exists() else ""
    return stored if f"-- {_fingerprint()}\n" in stored else transpiled()


def transpiled() -> str:
    """The statements, translated again."""
    from sqlglot import exp

    head = "-- Made from deploy/bigquery by python -m rankbeam.transforms.clients.warehouse.views; do not edit.\n"
    statements = (
        exp.Create(kind="VIEW", this=exp.to_table(name), expression=tree).sql("duckdb", pretty=True)
        for name, tree in parsed().items()
    )
    return f"{head}-- {_fingerprint()}\n" + "".join(f"\n{statement};\n" for statement in statements)


def for_bigquery(dataset: DatasetName) -> Iterator[tuple[str, str]]:
    """The statements that make, or replace, the views in a dataset that holds the tables."""
    from sqlglot import exp

    trees = parsed()
    ours = {*tables.TABLES, *trees}
    for name, tree in trees.items():
        for table in tree.find_all(exp.Table):
            if table.name in ours:
                table.set("db", exp.to_identifier(dataset.dataset, quoted=True))
                table.set("catalog", exp.to_identifier(dataset.project, quoted=True))
        view = exp.table_(name, db=dataset.dataset, catalog=dataset.project, quoted=True)
        description = exp.Property(this=exp.var("description"), value=exp.Literal.string(about(name)))
        options = exp.Properties(expressions=[description])
        create = exp.Create(kind="VIEW", replace=True, this=view, properties=options, expression=tree)
        yield name, create.sql("bigquery", pretty=True)


def apply(dataset: DatasetName) -> Iterator[str]:
    """Make the views in BigQuery, or replace them, with the tables and columns that they need."""
    session = Session(dataset)
    try:
        for name in tables.TABLES:
            ensure(session, name)
        for name, statement in for_bigquery(dataset):
            _run(session, statement)
            yield str(dataset.table(name))
    except BigQueryError as error:
        raise RankbeamError(error.advice(dataset)) from error


def _run(session: Session, statement: str) -> None:
    job = session.wait(session.query(f"rankbeam-view-{uuid.uuid4().hex}", statement, None))
    if job.error_result:
        raise of_job(job.error_result)


def _fingerprint() -> str:
    """A hash of all sources."""
    whole = "\0".join(part for pair in sources().items() for part in pair)
    return f"sha256 {hashlib.sha256(whole.encode()).hexdigest()}"


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


if __name__ == "__main__":
    FOR_DUCKDB.parent.mkdir(exist_ok=True)
    FOR_DUCKDB.write_text(transpiled(), encoding="utf-8")
