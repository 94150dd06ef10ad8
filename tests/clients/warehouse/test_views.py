"""Every view says the same in DuckDB and in BigQuery, and what plain Python says of the same tables."""

import io
import json
import re
import shutil
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import sqlglot
from sqlglot import exp
from support.emulators import Cloud
from support.emulators.fixtures import cloud, emulators  # noqa: F401  pytest finds them by name
from support.expected_views import Expected, costly
from support.finished import QUERIES, experiment, finished, install, ranks
from support.offline_experiment import answered
from support.runs import rankbeam, run_experiment

from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.judge.definitions import JUDGED
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.panels import LOWER_IS_BETTER

Rows = list[dict[str, Any]]
VIEWS = sorted(views.sources())
FIRST = {"steady": ranks(1, 2, 3), "other": ranks(4, 1), "shaky": ranks(1, 2, q03=-1), "gone": ranks(1)}
LATER = {
    "steady": ranks(1, 2, 3),
    "other": ranks(9, 3, q01=1, q05=0),
    "shaky": ranks(1, 1, 5, q07=-1, q08=-1, q09=0),
    "new": ranks(3),
}
NIGHTLY = {
    "one": {"steady": ranks(1, 2, 3), "before": ranks(2, 1), "shaky": ranks(1, 2, 4)},
    "two": {"steady": ranks(1, 2, 3), "before": ranks(2, 1), "shaky": ranks(-1)},
    "three": {"steady": ranks(-1), "before": ranks(-2), "shaky": ranks(-1, -2)},
    "four": {"steady": ranks(2, 3, 4), "after": ranks(2, 1), "shaky": ranks(1, 2, 4, q03=-1)},
    "five": {"steady": ranks(-1), "shaky": ranks(-2)},
}
"""Every call of one configuration fails, then those of all; then one is renamed, and all fail again."""
CALLED = {"first": (100, 0, 3), "later": (40, 120, 2), "small": (0, 7, 0)}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of an experiment, the last over another dataset; nightly ones with outages; one with all else."""
    folder = tmp_path_factory.mktemp("views")
    with pytest.MonkeyPatch.context() as monkeypatch:
        install(folder, monkeypatch)
        statistics = {"replicates": 200, "pairs": "all"}
        finished(folder, FIRST, "first", statistics=statistics)
        finished(folder, LATER, "later", statistics=statistics, ties=True)
        finished(folder, FIRST, "small", QUERIES[:14], statistics=statistics)
        for run_id, configurations in NIGHTLY.items():
            metrics = ["RR", "AP"] if run_id == "four" else ["RR"]
            finished(folder, configurations, run_id, name="nightly", slices=[], metrics=metrics)
        parts = {"steady": ranks(2, q01=-1, q05=-2), "shaky": ranks(1, 3, q01=-1, q02=-1, q04=0)}
        swept = experiment(folder, parts, dialects=["rankbeam", "pytrec_eval"], grid={"top_k": [5, 20]})
        swept["configurations"].append(
            {"name": "fused", "retriever": {"type": "fusion", "parts": [*parts]}, "top_k": 20}
        )
        run_experiment(folder, {"name": "another", **swept}, "apart")
        prices = {"reader": {"requests_per_minute": 600_000, "price_per_1000": 2.0}}
        run_experiment(folder, {"name": "answered", **answered(folder), "quotas": prices}, "judged")
        assert rankbeam("monitor", folder / "out", "--experiment-name", "nightly").exit_code in (0, 3)
    return folder / "out"


@pytest.fixture(scope="module")
def loaded(output: Path) -> dict[str, pa.Table]:
    """The tables of these runs, as if they had made calls, and the rows of one that did not finish."""
    files = {name: [pq.read_table(path) for path in output.glob(f"{name}/*/*.parquet")] for name in tables.TABLES}
    read = {name: pa.concat_tables(some) for name, some in files.items()}
    rows = {name: pa.Table.from_pylist(costly(table.to_pylist()), table.schema) for name, table in read.items()}
    runs = rows["runs"].to_pylist()
    for row in runs:
        row["calls"], row["ledger_hits"], row["failures"] = CALLED.get(row["run_id"], (0, 0, 0))
        row["started_at"] -= timedelta(days=row["run_id"] == "first")
        row["warnings"] = ["look"] if row["run_id"] == "later" else []
    recalled = [row | {"from_ledger": half_recalled(row)} for row in rows["usage"].to_pylist()]
    rows["usage"] = pa.Table.from_pylist(recalled, tables.USAGE)
    moved = {row["run_id"]: row["started_at"] for row in runs}
    rows["runs"] = pa.Table.from_pylist(runs, tables.RUNS)
    for name in set(tables.TABLES) - {"runs"}:
        table = rows[name]
        starts = pa.array([moved[run_id] for run_id in table["run_id"].to_pylist()], tables.COMMON[2].type)
        table = table.set_column(2, table.schema.field(2), starts)
        torn = table.filter(pc.equal(table["run_id"], "later"))
        torn = torn.set_column(0, torn.schema.field(0), pa.repeat("torn", torn.num_rows))
        rows[name] = pa.concat_tables([table, torn])
    return rows


def half_recalled(row: Mapping[str, Any]) -> Rows:
    """Answers in the ledger for every other configuration of a row of usage; early versions did not store `calls`."""
    return [
        {"config_id": used["config_id"], "ledger_hits": 7, "cost": used["cost"] and used["cost"] / 4, "calls": calls}
        for used, calls in zip(row["configurations"][::2], cycle([None, 9]), strict=False)
    ]


@pytest.fixture(scope="module")
def expected(loaded: Mapping[str, pa.Table]) -> Expected:
    return Expected({name: table.to_pylist() for name, table in loaded.items()})


@pytest.fixture(scope="module")
def laptop(loaded: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """A DuckDB where clocks are half an hour off."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Kolkata'")
    for name, table in loaded.items():
        connection.register("arrow", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
    connection.execute(views.for_duckdb())
    return connection


def in_duckdb(connection: duckdb.DuckDBPyConnection, view: str) -> Rows:
    cursor = connection.execute(f"SELECT * FROM {view}")
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def in_utc(value: date) -> str:
    return str(value.astimezone(UTC) if isinstance(value, datetime) else value)


def assert_same(ours: Iterable[Mapping[str, Any]], theirs: Iterable[Mapping[str, Any]]) -> None:
    """Rows in any order, with numbers to the last bits."""

    def key(row: Mapping[str, Any]) -> str:
        exact = {name: value for name, value in row.items() if not isinstance(value, float)}
        return json.dumps(exact, sort_keys=True, default=in_utc)

    left, right = sorted(ours, key=key), sorted(theirs, key=key)
    assert [key(row) for row in left] == [key(row) for row in right]
    for one, other in zip(left, right, strict=True):
        floats = {name: value for name, value in one.items() if isinstance(value, float)}
        assert floats == pytest.approx({name: other[name] for name in floats}, rel=1e-12, abs=1e-12)


def test_views_name_the_metrics_of_which_lower_values_are_better() -> None:
    defined = {name.partition("(")[0] for name, definition in JUDGED.items() if definition.lower_is_better}
    assert defined == LOWER_IS_BETTER
    named = re.findall(r"\^\(([\w|]+)\)", " ".join(views.sources().values()))
    assert [set(names.split("|")) for names in named] == [set(LOWER_IS_BETTER)] * 3


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_says_what_the_tables_say(laptop: duckdb.DuckDBPyConnection, expected: Expected, view: str) -> None:
    rows = list(getattr(expected, view)())
    assert rows
    assert_same(in_duckdb(laptop, view), rows)


def test_the_runs_have_what_the_views_tell_apart(expected: Expected) -> None:
    verdicts = {
        (row["configuration"], row["metric"]): row["verdict"]
        for row in expected.regressions()
        if row["run_id"] == "later"
    }
    assert verdicts["steady", "RR"] == "same"
    assert verdicts["other", "RR"] == "worse"
    compared = {row["run_id"] for row in expected.regressions() if row["verdict"] != "nothing to compare"}
    assert compared == {"later", "two", "four"}
    assert any(row["value"] is None for row in expected.query_changes())
    assert {row["baseline"] for row in expected.differences()} >= {"steady", "other", "shaky"}
    assert {row["attribute"] for row in expected.slice_leaderboard()} == {"language", "level", "language×level"}
    assert {row["failed_quota"] for row in expected.coverage()} >= {None, 0, 1, 2, 3, 24}
    assert sum(row["empty"] for row in expected.coverage() if row["run_id"] != "apart") == 2
    assert {row["attribute"] for row in expected.slice_leaderboard() if row["dialect"] == "pytrec_eval"}


@pytest.mark.parametrize(("metric", "owner"), [("Faithfulness", "answer"), ("ContextRecall", "reference")])
def test_values_are_those_that_the_verdicts_of_the_view_give(
    laptop: duckdb.DuckDBPyConnection, metric: str, owner: str
) -> None:
    counted: defaultdict[tuple[str, str], defaultdict[int, bool]] = defaultdict(lambda: defaultdict(bool))
    for row in in_duckdb(laptop, "verdicts_of_configuration"):
        if (row["owner"], row["evidence"]) == (owner, "context") and not row["is_repeat"]:
            claims = counted[row["configuration"], row["query_id"]]
            claims[row["position"]] |= row["verdict"] == "supported"
    values = {
        (row["configuration"], row["query_id"]): row["value"]
        for row in in_duckdb(laptop, "per_query")
        if row["metric"].startswith(f"{metric}(") and row["value"] is not None
    }
    assert len(values) > 2
    assert values == pytest.approx({key: sum(of.values()) / len(of) for key, of in counted.items()})


def test_what_has_no_language_model_says_so_in_every_row(laptop: duckdb.DuckDBPyConnection) -> None:
    judges = {row["judge"] for row in in_duckdb(laptop, "verdicts_of_configuration")}
    judges |= {row["model"] for row in in_duckdb(laptop, "answers_of_configuration")}
    assert judges == {"lexical: word overlap, no language model", "extractive: word overlap, no language model"}


def test_rows_of_a_run_are_joined_with_its_partition() -> None:
    joins = [join for tree in views.syntax_trees().values() for join in tree.find_all(exp.Join)]
    assert len(joins) > 40
    for join in joins:
        pairs = {equal.sql() for equal in join.find_all(exp.EQ)}
        of_runs = {pair for pair in pairs if "run_id" in pair}
        assert {pair.replace("run_id", "started_at") for pair in of_runs} <= pairs
        assert of_runs or "UNNEST" in join.sql("bigquery")


def test_values_of_slices_may_look_like_crossings() -> None:
    connection = duckdb.connect()
    for name, schema in tables.TABLES.items():
        connection.register("arrow", schema.empty_table())
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
    connection.execute("INSERT INTO runs BY NAME SELECT 'r' AS run_id, now() AS started_at")
    connection.execute(
        "INSERT INTO configurations BY NAME SELECT *, 'c' AS config_id FROM (FROM runs SELECT run_id, started_at)"
    )
    names = ["size=2×4", "size=a=b", "size=2×4×kind=x y", "kind=×size="]
    for name in names:
        connection.execute(
            "INSERT INTO configuration_metrics BY NAME SELECT run_id, started_at, config_id, ? AS slice "
            "FROM configurations",
            [name],
        )
    connection.execute(views.for_duckdb())
    rows = connection.execute("SELECT slice, attribute, value FROM slice_leaderboard").fetchall()
    assert {row[0]: row[1:] for row in rows} == {
        "size=2×4": ("size", "2×4"),
        "size=a=b": ("size", "a=b"),
        "size=2×4×kind=x y": ("size×kind", "2×4 × x y"),
        "kind=×size=": ("kind×size", " × "),
    }


@pytest.fixture
def dataset(cloud: Cloud) -> DatasetName:  # noqa: F811  the fixture
    from google.cloud import bigquery

    name = DatasetName(cloud.bigquery.project, f"views_{uuid.uuid4().hex[:8]}")
    bigquery.Client(project=name.project).create_dataset(name.dataset)
    return name


def applied(dataset: DatasetName) -> None:
    result = rankbeam("warehouse", "apply", "--dataset", dataset)
    assert result.exit_code == 0, result.stderr
    assert sorted(result.stdout.split()) == [str(dataset.table(name)) for name in VIEWS]


@pytest.mark.campaign
def test_bigquery_holds_the_same_rows(
    dataset: DatasetName, loaded: Mapping[str, pa.Table], laptop: duckdb.DuckDBPyConnection
) -> None:
    from google.cloud import bigquery

    client = bigquery.Client(project=dataset.project)
    lists = bigquery.ParquetOptions()
    lists.enable_list_inference = True
    config = bigquery.LoadJobConfig(source_format="PARQUET", parquet_options=lists)
    applied(dataset)  # over tables that it makes
    for name, table in loaded.items():
        content = io.BytesIO()
        pq.write_table(table, content)
        content.seek(0)
        client.load_table_from_file(content, str(dataset.table(name)), job_config=config).result()
    applied(dataset)
    for view in VIEWS:
        rows = client.query_and_wait(f"SELECT * FROM {dataset.table(view).quoted}")
        assert_same([dict(row) for row in rows], in_duckdb(laptop, view))


def test_without_a_dataset_it_says_what_to_do(dataset: DatasetName) -> None:
    result = rankbeam("warehouse", "apply", "--dataset", f"{dataset}_not")
    assert result.exit_code == 2
    assert (
        f"make the dataset: bq --location=LOCATION mk --dataset {dataset.project}:{dataset.dataset}_not"
        in result.stderr
    )


def test_a_dry_run_prints_statements_in_an_order_that_works() -> None:
    result = rankbeam("warehouse", "apply", "--dataset", "my-project.my_data", "--dry-run")
    assert result.exit_code == 0, result.stderr
    statements: list[str] = []
    for statement in sqlglot.parse(result.stdout, dialect="bigquery"):
        assert isinstance(statement, exp.Create)
        target, *read = list(statement.find_all(exp.Table))
        assert all((table.catalog, table.db) == ("my-project", "my_data") for table in (target, *read))
        assert {table.name for table in read} <= {*tables.TABLES, *statements}
        statements.append(target.name)
    assert sorted(statements) == VIEWS


@pytest.mark.parametrize("name", ["my_data", "my-project.`x`", "my-project.a; DROP TABLE x", "my-project.a.b c"])
def test_a_bad_name_is_refused(name: str) -> None:
    result = rankbeam("warehouse", "apply", "--dataset", name, "--dry-run")
    assert result.exit_code == 2
    assert "is not a BigQuery dataset" in result.stderr


def test_files_of_the_version_with_two_views_are_ours(tmp_path: Path, output: Path) -> None:
    path = tmp_path / warehouse.FILE_NAME
    with duckdb.connect(str(path)) as connection:
        for name in tables.TABLES:
            connection.execute(f"CREATE TABLE {name} (run_id VARCHAR)")
        for name in ("leaderboard", "per_query"):
            connection.execute(f"CREATE VIEW {name} AS SELECT run_id FROM runs")
    warehouse.refuse_foreign(str(tmp_path))
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE trend (mine INT)")
    with pytest.raises(InputError, match="holds trend"):
        warehouse.refuse_foreign(str(tmp_path))
    warehouse.refuse_foreign(str(output))


@pytest.mark.parametrize("name", ["which?", r"a\b"])
def test_a_folder_where_duckdb_cannot_write_is_refused_before_the_run(tmp_path: Path, output: Path, name: str) -> None:
    folder = tmp_path / name
    shutil.copytree(output, folder)
    if name == "which?" or duckdb.__version__ >= "2":  # DuckDB 1 took backslashes
        with pytest.raises(InputError, match="cannot be written"):
            warehouse.build(str(folder))
    with pytest.raises(InputError, match="DuckDB cannot write; choose another"):
        warehouse.refuse_foreign(str(folder))
