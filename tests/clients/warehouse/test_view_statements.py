"""The statements of views: their columns, their form, and what DuckDB and Terraform make of them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError
from support.data import REPOSITORY
from support.view_columns import table_columns, with_views

from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables

VIEWS = sorted(views.sources())


def test_every_column_exists() -> None:
    columns = with_views(table_columns())
    assert columns.keys() == {*tables.TABLES, *VIEWS}
    for view in set(VIEWS) - {"cost"}:
        assert {"run_id", "experiment", "started_at", "is_latest"} <= columns[view].keys()


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [
        ("runs", "calls", None),
        ("configuration_metrics", "joint_low", None),
        ("comparisons", "baseline", None),
        ("failures", "kind", None),
        ("query_metrics", "metrics", "ARRAY<STRUCT<metric STRING, worth FLOAT64>>"),
    ],
)
def test_a_column_that_is_renamed_breaks_a_view(table: str, column: str, kind: str | None) -> None:
    known = table_columns()
    old = known[table].pop(column)
    known[table][f"{column}_renamed" if kind is None else column] = kind or old
    with pytest.raises((OptimizeError, LookupError)):
        with_views(known)


@pytest.fixture(scope="module")
def trees() -> dict[str, exp.Query]:
    return views.syntax_trees()


@pytest.fixture(scope="module")
def statements() -> dict[str, str]:
    return dict(views.for_bigquery(DatasetName("my-project", "data")))


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_one_select_with_its_question(view: str, trees: dict[str, exp.Query]) -> None:
    text = views.sources()[view]
    assert len(sqlglot.parse(text, dialect="bigquery")) == 1
    assert isinstance(trees[view], exp.Select)
    assert "?" in views.about(view)
    assert not re.search(r"FARM_FINGERPRINT|ARRAY_AGG|/ (?!1000000\b)", text)
    assert "COUNTIF" not in text  # in DuckDB it is null, and not 0, where the condition is null in every row


@pytest.mark.parametrize("view", VIEWS)
def test_a_plain_replacement_does_for_terraform(view: str, statements: dict[str, str]) -> None:
    replaced = re.sub(r"(FROM|JOIN) ([a-z_]+)", r"\1 `my-project`.`data`.\2", views.sources()[view])
    ours = sqlglot.parse_one(statements[view], dialect="bigquery")
    theirs = sqlglot.parse_one(replaced, dialect="bigquery")
    assert theirs.sql("bigquery", comments=False) == ours.expression.sql("bigquery", comments=False)


def test_what_is_kept_for_duckdb_is_what_sqlglot_makes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stored = views.FOR_DUCKDB.read_text()
    assert views.for_duckdb() == stored, "run make deploy-files"

    def trees(script: str) -> list[str]:
        statements = sqlglot.parse(script, dialect="duckdb")
        return [statement.sql("duckdb", comments=False) for statement in statements if statement is not None]

    assert trees(stored) == trees(views.transpile_views())
    (tmp_path / "views.sql").write_text(stored.replace("sha256 ", "sha256 0"))
    monkeypatch.setattr(views, "FOR_DUCKDB", tmp_path / "views.sql")
    assert views.for_duckdb() == views.transpile_views()


def test_a_run_does_not_wait_for_sqlglot() -> None:
    code = "import sys; from rankbeam.transforms.clients.warehouse import views; views.for_duckdb(); "
    code += "sys.exit('sqlglot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0
