"""`results.duckdb` over files of several releases."""

from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from support.finished import finished, install, ranks

from rankbeam.transforms.clients.warehouse import duckdb as warehouse

LATER = ["dialect", "parts"]
"""Columns of `configurations` that the first release did not write."""


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
