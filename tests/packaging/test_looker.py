"""The LookML parses, every field is a column, and what the dashboards ask for can be asked."""

import re
from typing import Any

import duckdb
import lkml
import pytest
import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError
from support import deploy_files
from support.data import REPOSITORY
from support.looker import REFERENCE, TIMEFRAMES, Project, filters_of
from support.view_columns import Columns, all_columns, resolved

LOOKER = REPOSITORY / "deploy" / "looker"
PROJECT = Project(LOOKER)
VIEWS = sorted(path.name.removesuffix(".view.lkml") for path in LOOKER.glob("views/*"))  # parsed by the tests alone
TYPES = {"string": {"STRING"}, "number": {"INT64", "FLOAT64"}, "yesno": {"BOOL"}, "date": {"DATE"}}
NESTED = ("slices", "metrics", "documents")
ELEMENTS = [
    (dashboard, element["name"]) for dashboard, content in PROJECT.dashboards.items() for element in content["elements"]
]
BOARD = [
    ("r1", "a", "nDCG@10", 0.5, 0.4, 0.6, 10),
    ("r1", "b", "nDCG@10", 0.3, 0.2, 0.4, 30),
    ("r1", "a", "AP", 0.9, 0.8, 1.0, 10),
    ("r2", "a", "nDCG@10", None, None, None, 0),
]


def test_the_columns_are_those_of_the_tables_and_views() -> None:
    assert deploy_files.FOR_LOOKER.read_text() == deploy_files.for_looker(), "run make deploy-files"


def explores_of(view: str) -> list[str]:
    return [name for name in PROJECT.explores if view == name or view in PROJECT.joins(name)]


def columns_of(explore: str, fields: list[str], known: Columns) -> dict[str, str]:
    return resolved(sqlglot.parse_one(PROJECT.sql(explore, fields), dialect="bigquery"), known)


def element(dashboard: str, name: str) -> dict[str, Any]:
    content: dict[str, Any]
    (content,) = [item for item in PROJECT.dashboards[dashboard]["elements"] if item["name"] == name]
    return content


def test_everything_parses_and_is_included() -> None:
    for path in LOOKER.rglob("*.lkml"):
        assert lkml.load(path.read_text()), path
    assert PROJECT.model["includes"] == ["/columns.view.lkml", "/views/*.view.lkml", "/dashboards/*.dashboard.lookml"]
    assert sorted(PROJECT.views) == VIEWS
    assert sorted(PROJECT.dashboards) == ["leaderboard", "query"]
    constants = {constant["name"] for constant in lkml.load((LOOKER / "manifest.lkml").read_text())["constants"]}
    text = "".join(path.read_text() for path in LOOKER.rglob("*.lkml"))
    assert set(re.findall(r"@\{(\w+)\}", text)) == constants


@pytest.mark.parametrize("view", VIEWS)
def test_every_field_is_a_column(view: str) -> None:
    explores = explores_of(view)
    assert explores, "in no explore"
    fields = PROJECT.views[view].fields
    kinds = columns_of(explores[0], [f"{view}.{name}" for name in fields], all_columns()) if fields else {}
    for name, field in fields.items():
        kind = kinds[f"{view}__{name}"]
        if "timeframes" in field:
            assert kind == "TIMESTAMP"
            assert set(field["timeframes"]) <= TIMEFRAMES
        elif name in NESTED and not field["is_measure"]:
            assert kind.startswith("ARRAY")
        else:
            assert kind in TYPES.get(field["type"], TYPES["number"])


@pytest.mark.parametrize("view", VIEWS)
def test_keys_drills_and_links_are_right(view: str) -> None:
    fields = PROJECT.views[view].fields
    keys = [name for name, field in fields.items() if field.get("primary_key") == "yes"]
    assert keys in ([["key"], ["run_id"]] if PROJECT.views[view].is_table else [["key"], []])
    for field in fields.values():
        assert set(field.get("drill_fields", ())) <= fields.keys()
        assert "type" in field
        for link in field.get("links", ()):
            address, _, values = link["url"].partition("?")
            parameters = dict(pair.split("=") for pair in values.split("&"))
            assert address == "/dashboards/rankbeam::query"
            assert parameters.keys() == {"Query", "Experiment", "Run"}
            assert parameters.keys() <= {filter_["name"] for filter_ in PROJECT.dashboards["query"]["filters"]}
            used = re.findall(r"\{\{ (\w+\.\w+)\._value \| url_encode \}\}", values)
            assert used == [f"{view}.experiment", f"{view}.run_id"]
            assert all(map(PROJECT.field, used))


@pytest.mark.parametrize("explore", PROJECT.explores)
def test_every_join_and_filter_of_an_explore_exists(explore: str) -> None:
    content = PROJECT.explores[explore]
    for name, join in PROJECT.joins(explore).items():
        assert join["relationship"] in ("many_to_one", "one_to_many", "one_to_one")
        for view, field in REFERENCE.findall(join.get("sql") or join["sql_on"]):
            assert field in PROJECT.views[view].fields
        fields = [f"{name}.{field}" for field in PROJECT.views[name].fields] or [f"{explore}.experiment"]
        assert resolved(sqlglot.parse_one(PROJECT.sql(explore, fields[:3]), dialect="bigquery"), all_columns())
    for name in PROJECT.joins(explore):  # a name of a column and of a table would mean either
        if PROJECT.views[name].is_table:
            assert not all_columns()[PROJECT.views[name].table].keys() & {explore, *PROJECT.joins(explore)}
    for field, _ in filters_of(content.get("always_filter", {})):
        assert PROJECT.field(field)


@pytest.mark.parametrize(("dashboard", "name"), ELEMENTS)
def test_an_element_of_a_dashboard_can_be_asked(
    small_tables: duckdb.DuckDBPyConnection, dashboard: str, name: str
) -> None:
    item = element(dashboard, name)
    assert item["model"] == "rankbeam"
    filters = {"Started": "90 days", "Days back": "30"}
    query = sqlglot.parse_one(
        PROJECT.of_element(item, {name: filters.get(name, "x") for name in item["listen"]}), dialect="bigquery"
    )
    assert list(resolved(query, all_columns())) == [field.replace(".", "__") for field in item["fields"]]
    small_tables.execute(query.sql("duckdb")).fetchall()
    expected = {
        field.partition(" ")[0] for field in (*item["sorts"], *item.get("pivots", ()), *item.get("fill_fields", ()))
    }
    assert expected <= set(item["fields"])
    chosen = {key: field["field"] for field in PROJECT.dashboards[dashboard]["filters"] for key in [field["name"]]}
    for listened, field in item["listen"].items():
        assert chosen[listened].partition(".")[2] == field.partition(".")[2]


@pytest.mark.parametrize("dashboard", PROJECT.dashboards)
def test_the_layout_of_a_dashboard_has_no_overlap(dashboard: str) -> None:
    taken: set[tuple[int, int]] = set()
    for item in PROJECT.dashboards[dashboard]["elements"]:
        rows, columns = (range(item[at], item[at] + item[size]) for at, size in (("row", "height"), ("col", "width")))
        own = {(row, column) for row in rows for column in columns}
        assert not own & taken
        assert max(columns) < 24
        taken |= own
    for item in PROJECT.dashboards[dashboard]["filters"]:
        view, _, name = item["field"].partition(".")
        if PROJECT.views[view].parameter(name):
            continue  # a number, without suggestions
        suggested = PROJECT.views[view].filters.get(name, {}).get("suggest_dimension", name)
        assert PROJECT.sql(item["explore"], [f"{view}.{suggested}"])


@pytest.mark.parametrize(
    ("table", "column", "field"),
    [
        ("leaderboard", "ci_low", "leaderboard.interval_low"),
        ("coverage", "failed_quota", "coverage.quota_count"),
        ("query_metrics", "status", "queries.status"),
        ("run_history", "is_latest", "runs.is_latest"),
    ],
)
def test_a_column_that_is_renamed_breaks_a_field(table: str, column: str, field: str) -> None:
    known = {name: dict(columns) for name, columns in all_columns().items()}
    known[table][f"{column}_renamed"] = known[table].pop(column)
    with pytest.raises((OptimizeError, LookupError)):
        columns_of(explores_of(field.partition(".")[0])[0], [field], known)


@pytest.fixture
def board(small_tables: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A leaderboard of few rows."""
    connection = small_tables
    connection.execute("DROP VIEW leaderboard")
    connection.execute(
        "CREATE TABLE leaderboard (run_id TEXT, config_id TEXT, metric TEXT, mean DOUBLE, ci_low DOUBLE, "
        "ci_high DOUBLE, queries BIGINT, started_at INTEGER DEFAULT 1)"
    )
    connection.execute("DROP VIEW run_choices")
    connection.execute(
        "CREATE TABLE run_choices (run_id TEXT, is_latest BOOLEAN, is_last_good BOOLEAN, started_at INTEGER)"
    )
    connection.executemany("INSERT INTO run_choices VALUES (?, TRUE, TRUE, 1)", [("r1",), ("r2",)])
    connection.executemany("INSERT INTO leaderboard VALUES (?, ?, ?, ?, ?, ?, ?, 1)", BOARD)
    return connection


def ask(connection: duckdb.DuckDBPyConnection, *fields: str) -> list[tuple[Any, ...]]:
    query = sqlglot.parse_one(PROJECT.sql("leaderboard", fields), dialect="bigquery")
    assert isinstance(query, exp.Select)
    return connection.execute(query.sql("duckdb")).fetchall()


def test_means_are_weighted_by_queries(board: duckdb.DuckDBPyConnection) -> None:
    rows = ask(board, "leaderboard.metric", "leaderboard.weighted_mean")
    assert dict(rows) == pytest.approx({"nDCG@10": (0.5 * 10 + 0.3 * 30) / 40, "AP": 0.9})
    assert ask(board, "leaderboard.weighted_mean") == [(None,)]  # of two metrics


def test_intervals_are_not_averaged(board: duckdb.DuckDBPyConnection) -> None:
    ends = ("leaderboard.interval_low", "leaderboard.interval_high")
    assert set(ask(board, "leaderboard.metric", *ends)) == {("nDCG@10", None, None), ("AP", 0.8, 1.0)}
    rows = ask(board, "leaderboard.run_id", "leaderboard.config_id", "leaderboard.metric", *ends)
    assert set(rows) == {row[:3] + row[4:6] for row in BOARD}


def test_no_measure_averages_what_cannot_be() -> None:
    apart = re.compile(r"ci_|joint|p_value|p_adjusted|q_value|std_error|tie_|lowest|highest|effect|detectable")
    measures = [
        field["sql"]
        for view in PROJECT.views.values()
        for field in view.fields.values()
        if field["is_measure"] and apart.search(field.get("sql", ""))
    ]
    assert len(measures) > 10
    assert {sql[: sql.find("(", 20) + 1] for sql in measures} == {"CASE WHEN COUNT(DISTINCT ${key}) = 1 THEN MIN("}
