"""The views over the tables: GoogleSQL in `deploy/bigquery`, one file per view, and sqlglot's translation for DuckDB.

Importing sqlglot and translating takes a third of a second. To save every run that time, the translation is stored in
`deploy/duckdb`, with a hash of its source; if the hash does not match, the views are translated again.
`make deploy-files` writes the file after a change.
"""

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from rankbeam.transforms.clients.bigquery.errors import BigQueryError
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.session import Session
from rankbeam.transforms.clients.bigquery.tables import ensure
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import RankbeamError

if TYPE_CHECKING:
    from sqlglot import exp

FOLDER = Path(__file__).parents[3] / "deploy"
"""The folder of the views: next to this package, both in the repository and when installed."""

FOR_DUCKDB = FOLDER / "duckdb" / "views.sql"


@cache
def sources() -> Mapping[str, str]:
    """The GoogleSQL of each view, by name; it refers to tables and views by their bare names."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((FOLDER / "bigquery").glob("*.sql"))}


def about(name: str) -> str:
    """The question that a view answers: the comment at the top of its file."""
    lines = sources()[name].splitlines()
    first = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    return " ".join(line.removeprefix("--").strip() for line in lines[:first])


def syntax_trees() -> "dict[str, exp.Query]":
    """The syntax tree of each view, without comments; a view comes after the views that it reads."""
    import sqlglot
    from sqlglot import exp

    trees = {name: sqlglot.parse_one(text, dialect="bigquery", into=exp.Select) for name, text in sources().items()}
    for node in (node for tree in trees.values() for node in tree.walk()):
        node.pop_comments()
    read = {name: {table.name for table in tree.find_all(exp.Table)} & trees.keys() for name, tree in trees.items()}
    return {name: trees[name] for name in TopologicalSorter(read).static_order()}


def for_duckdb() -> str:
    stored = FOR_DUCKDB.read_text(encoding="utf-8") if FOR_DUCKDB.exists() else ""
    return stored if f"-- {_fingerprint()}\n" in stored else transpile_views()


def transpile_views() -> str:
    from sqlglot import exp

    head = "-- Made from deploy/bigquery by `make deploy-files`; do not edit.\n"
    statements = (
        exp.Create(kind="VIEW", this=exp.to_table(name), expression=tree).sql("duckdb", pretty=True)
        for name, tree in syntax_trees().items()
    )
    return f"{head}-- {_fingerprint()}\n" + "".join(f"\n{statement};\n" for statement in statements)


def for_bigquery(dataset: DatasetName) -> Iterator[tuple[str, str]]:
    """The statements that create or replace the views in a dataset that holds the tables."""
    from sqlglot import exp

    trees = syntax_trees()
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
    """Create or replace the views in BigQuery, with the tables and columns that they need."""
    session = Session(dataset)
    try:
        for name in tables.TABLES:
            ensure(session, name)
        for name, statement in for_bigquery(dataset):
            if (error := session.outcome(f"rankbeam-view-{uuid.uuid4().hex}", statement)) is not None:
                raise error
            yield str(dataset.table(name))
    except BigQueryError as error:
        raise RankbeamError(error.advice(dataset)) from error


def _fingerprint() -> str:
    whole = "\0".join(part for pair in sources().items() for part in pair)
    return f"sha256 {hashlib.sha256(whole.encode()).hexdigest()}"
