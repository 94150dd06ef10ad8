"""Results of the first release are read, compared, reported and continued.

`tests/support/first_release/run` was written by commit 313c12e, from the experiment beside it.
"""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from support.data import REPOSITORY
from support.runs import rankbeam

from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records import tables

RELEASED = REPOSITORY / "tests" / "support" / "first_release"
TABLES_THEN = {path.name for path in (RELEASED / "run").iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The experiment of that time, with its results."""
    shutil.copytree(RELEASED, tmp_path / "release")
    (tmp_path / "release" / "run").rename(tmp_path / "release" / "out")
    return tmp_path / "release"


def test_its_results_are_read(folder: Path) -> None:
    compared = rankbeam("compare", folder / "out", "--format", "json")
    assert compared.exit_code == 0, compared.stderr
    rows = json.loads(compared.stdout)["comparisons"]
    assert {(row["configuration"], row["metric"], row["queries"]) for row in rows} == {
        ("two", "nDCG@10", 3),
        ("two", "RR", 3),
    }
    written = rankbeam("report", folder / "out")
    assert written.exit_code == 0, written.stderr


@pytest.mark.long
def test_its_folder_is_continued(folder: Path) -> None:
    before = rankbeam("evaluate", folder / "experiment.yaml", "--run-id", "second", "--format", "json")
    assert before.exit_code == 0, before.stderr
    with duckdb.connect(str(folder / "out" / "results.duckdb"), read_only=True) as connection:
        for name, schema in tables.TABLES.items():
            present = [column for column, *_ in connection.execute(f'DESCRIBE "{name}"').fetchall()]
            assert set(schema.names) <= set(present), name
            runs = {run for (run,) in connection.execute(f'SELECT DISTINCT run_id FROM "{name}"').fetchall()}
            if name in ("runs", "configurations", "configuration_metrics", "comparisons", "query_metrics"):
                assert runs == {"first", "second"}, name
        for view in warehouse.views.sources():
            connection.execute(f'SELECT * FROM "{view}"').fetchall()
        means = connection.execute(
            "SELECT metric, config_id, count(DISTINCT mean), count(*) FROM configuration_metrics GROUP BY ALL"
        ).fetchall()
    assert [row[2:] for row in means] == [(1, 2)] * 4
    both = rankbeam("compare", folder / "out", "--baseline-run-id", "first", "--run-id", "second", "--format", "json")
    assert {row["verdict"] for row in json.loads(both.stdout)["comparisons"]} == {"equal"}


def test_its_duckdb_file_is_replaced(folder: Path) -> None:
    path = folder / "out" / "results.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name in TABLES_THEN:
            connection.execute(f'CREATE TABLE "{name}" (run_id VARCHAR)')
        for name in ("leaderboard", "per_query"):
            connection.execute(f'CREATE VIEW "{name}" AS SELECT 1')
    warehouse.refuse_foreign(str(folder / "out"))
    assert warehouse.build(str(folder / "out")) == str(path)
