"""`results.duckdb` over files of several releases."""

import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.finished import finished, install, ranks
from support.inputs import write

from rankbeam.pipelines.manage.prune import delete
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables

LATER = ["dialect", "parts"]
"""Columns of `configurations` that the first release did not write."""


@pytest.mark.long
def test_runs_of_older_releases_lack_columns_and_newer_ones_have_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch)
    for run_id in ("a", "b", "c"):
        finished(tmp_path, {"one": ranks(1, 2), "two": ranks(2, q01=-1)}, run_id)
    (old,), (new,) = ((tmp_path / "out" / "configurations" / name).glob("*.parquet") for name in ("a", "c"))
    pq.write_table(pq.read_table(old).drop_columns(LATER), old)
    table = pq.read_table(new)
    pq.write_table(table.append_column("of_tomorrow", table["name"]), new)
    with duckdb.connect(warehouse.build(str(tmp_path / "out")), read_only=True) as connection:
        board = connection.execute(
            "SELECT run_id, configuration, dialect FROM leaderboard WHERE metric = 'RR'"
        ).fetchall()
        failed = connection.execute("SELECT run_id, configuration, failed_quota FROM coverage").fetchall()
    names = {"a": None, "b": "rankbeam", "c": "rankbeam"}
    assert sorted(board) == [(run_id, name, dialect) for run_id, dialect in names.items() for name in ("one", "two")]
    assert sorted(failed) == [(run_id, name, int(name == "two")) for run_id in names for name in ("one", "two")]


def test_folders_of_killed_processes_are_deleted_a_day_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch)
    finished(tmp_path, {"one": ranks(1, 2)}, "a")
    old, new = (tmp_path / "out" / f".results-{name}" for name in ("old", "new"))
    for folder in (old, new):
        write(folder / "results.duckdb", b"x")
    os.utime(old, (0, 0))
    warehouse.build(str(tmp_path / "out"))
    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.long
def test_long_rankings_get_more_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """800 rankings of 2,600 documents did not fit: the run ended without its file."""
    install(tmp_path, monkeypatch)
    finished(tmp_path, {"one": ranks(1, 2)}, "a")
    (path,) = (tmp_path / "out" / "rankings" / "a").glob("*.parquet")
    row, *_ = pq.read_table(path).to_pylist()
    rows = [row | {"documents": row["documents"][:1] * 500}] * 400
    pq.write_table(pa.Table.from_pylist(rows, tables.RANKINGS), path)
    monkeypatch.setattr(warehouse, "_MEMORY", "20MB")
    with duckdb.connect(warehouse.build(str(tmp_path / "out")), read_only=True) as connection:
        assert connection.execute("SELECT sum(len(documents)) FROM rankings").fetchone() == (200_000,)


@pytest.mark.long
def test_a_run_that_ends_while_the_file_is_written_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nothing(set[tuple[str, str]]):
        def __contains__(self, entry: object) -> bool:
            if len(warehouse.finished_runs("out")) == 1:
                finished(tmp_path, {"one": ranks(1, 2)}, "b")
            return False

    install(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    finished(tmp_path, {"one": ranks(1, 2)}, "a")
    with duckdb.connect(warehouse.build("out", Nothing()), read_only=True) as connection:
        assert connection.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall() == [("a",), ("b",)]


@pytest.mark.long
def test_a_run_that_is_pruned_while_the_file_is_written_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nothing(set[tuple[str, str]]):
        def __contains__(self, entry: object) -> bool:
            if entry == ("rankings", "a"):
                delete("out", [Results("out", "a")])
            return False

    install(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    for run_id in ("a", "b"):
        finished(tmp_path, {"one": ranks(1, 2)}, run_id)
    with duckdb.connect(warehouse.build("out", Nothing()), read_only=True) as connection:
        assert connection.execute("SELECT run_id FROM runs").fetchall() == [("b",)]


def test_a_verdict_of_an_answer_is_none_of_a_context_with_the_same_text() -> None:
    connection = duckdb.connect()
    for name, schema in tables.TABLES.items():
        connection.register("arrow", schema.empty_table())
        connection.execute(f"CREATE TABLE {name} AS FROM arrow")
    run = "SELECT 'r' AS run_id, TIMESTAMPTZ '2026-11-27' AS started_at"
    connection.execute(f"INSERT INTO runs BY NAME {run}")
    connection.execute(f"INSERT INTO configurations BY NAME {run}, 'c' AS config_id")
    connection.execute(
        f"INSERT INTO answers BY NAME {run}, 'c' AS config_id, 'q' AS query_id, 0 AS sample, 'h' AS answer_hash, "
        "'h' AS reference_hash, [{'rank': 1, 'doc_id': 'd', 'text_hash': 'h'}] AS contexts"
    )
    for step in ("grade", "answer_kind", "nugget_assign"):
        connection.execute(
            f"INSERT INTO verdicts BY NAME {run}, 'q' AS query_id, 'h' AS right_hash, false AS is_sentinel, ? AS step",
            [step],
        )
    connection.execute(views.for_duckdb())
    rows = connection.execute("SELECT step, evidence FROM verdicts_of_configuration ORDER BY step").fetchall()
    assert rows == [("answer_kind", "answer"), ("grade", "context"), ("nugget_assign", "answer")]
