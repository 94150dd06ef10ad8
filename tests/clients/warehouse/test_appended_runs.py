"""`results.duckdb` is appended to: after any history of a folder, it equals one that is built from scratch."""

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support import memory_filesystem
from support.finished import finished, ranks
from support.finished import ranked as ranked
from support.inputs import write

from rankbeam.pipelines.manage.prune import delete
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records import tables

RUNS, STAYS = ["a", "b", "c", "d"], "e"
TABLES = ["configurations", "rankings", "monitor", "query_metrics"]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    run = finished(folder, {"one": ranks(1, 2), "two": ranks(2, q01=-1)}, "r", statistics={"replicates": 0})
    for run_id in [*RUNS, STAYS]:
        for path in Path(run.output).glob("*/r/*.parquet"):
            copy = folder / run_id / path.parts[-3] / run_id / path.name
            copy.parent.mkdir(parents=True)
            pq.write_table(named(pq.read_table(path), run_id), copy)
    return folder


def change(path: Path, new: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(new(pq.read_table(path)), path)


def named(rows: pa.Table, run_id: str) -> pa.Table:
    return replaced(rows, "run_id", pa.array([run_id] * rows.num_rows, pa.string()))


def replaced(rows: pa.Table, name: str, values: Any) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, pa.field(name, values.type, rows.schema.field(place).nullable), values)


def finish(out: Path, template: Path, run_id: str) -> None:
    names = sorted(tables.TABLES, key="runs".__eq__)
    for name in names[::-1]:  # `runs` is deleted first, and written last
        shutil.rmtree(out / name / run_id, ignore_errors=True)
    for name in names:
        shutil.copytree(template / run_id / name / run_id, out / name / run_id, copy_function=shutil.copyfile)


def other_experiment(rows: pa.Table) -> pa.Table:
    """Other rows, which take as many bytes."""
    return replaced(rows, "experiment", pa.array([name.as_py()[::-1] for name in rows["experiment"]], pa.string()))


def wider(rows: pa.Table) -> pa.Table:
    for field in rows.schema:
        if pa.types.is_int64(field.type):
            rows = replaced(rows, field.name, rows[field.name].cast(pa.float64()))
    return rows


CHANGES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "other rows": other_experiment,
    "no rows": lambda rows: rows.slice(0, 0),
    "wider numbers": wider,
    "a column less": lambda rows: rows.drop_columns(rows.column_names[-1:]),
    "a column more": lambda rows: rows.append_column("of_tomorrow", pa.array(range(rows.num_rows), pa.int64())),
    "other order": lambda rows: rows.select(rows.column_names[::-1]),
}


def contents(file: Path, folder: Path) -> dict[str, Any]:
    """All tables and views, read from a copy: DuckDB opens a path only once in a process."""
    copy = shutil.copy(file, folder / f"read-{os.urandom(8).hex()}.duckdb")
    with duckdb.connect(copy, read_only=True) as connection:
        kinds = connection.execute("SELECT table_name, table_type FROM information_schema.tables").fetchall()
        stored = {name for name, kind in kinds if kind == "BASE TABLE"}
        rows = {name: sorted(map(repr, connection.execute(f'FROM "{name}"').fetchall())) for name in stored}
        columns = {name: connection.execute(f'DESCRIBE "{name}"').fetchall() for name, _ in kinds}
    Path(copy).unlink()
    return {"kinds": sorted(kinds), "rows": rows, "columns": columns}


class History:
    """An output folder, and all that may happen to it."""

    def __init__(self, folder: Path, template: Path) -> None:
        self.folder, self.out, self.template = folder, folder / "out", template
        self.left_out: list[tuple[str, str]] = []
        for run_id in ("a", "b", STAYS):
            finish(self.out, template, run_id)
        self.build()

    @property
    def file(self) -> Path:
        return self.out / warehouse.FILE_NAME

    def build(self, _: str = "", __: str = "") -> None:
        warehouse.build(str(self.out), self.left_out)

    def run(self, run_id: str, _: str) -> None:
        finish(self.out, self.template, run_id)

    def two_runs_at_once(self, run_id: str, _: str) -> None:
        def evaluate(name: str) -> None:
            finish(self.out, self.template, name)
            self.build()

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(evaluate, [run_id, "d" if run_id != "d" else "a"]))

    def prune(self, run_id: str, _: str) -> None:
        if (self.out / "runs" / run_id).is_dir():
            delete(str(self.out), [Results(str(self.out), run_id)])

    def delete_by_hand(self, run_id: str, _: str) -> None:
        for name in tables.TABLES:
            shutil.rmtree(self.out / name / run_id, ignore_errors=True)

    def unfinished(self, run_id: str, _: str) -> None:
        shutil.rmtree(self.out / "runs" / run_id, ignore_errors=True)

    def change(self, run_id: str, how: str) -> None:
        for name in TABLES:
            for path in (self.out / name / run_id).glob("*.parquet"):
                change(path, CHANGES[how])

    def killed(self, run_id: str, how: str) -> None:
        """A writer leaves an incomplete file; a program that opened the finished one, its log."""
        write(self.out / f".results-{run_id}" / warehouse.FILE_NAME, b"x")
        if how == "other rows":
            write(Path(f"{self.file}.wal"), b"x")

    def rows_changed_by_another_program(self, run_id: str, how: str) -> None:
        if self.file.exists():
            statement = "UPDATE rankings SET query_id = 'q'" if how == "other rows" else "DELETE FROM rankings"
            with duckdb.connect() as connection:
                connection.execute(f"ATTACH '{self.file}' AS results")
                connection.execute(statement.replace("rankings", "results.rankings") + " WHERE run_id = ?", [run_id])

    def copy(self, _: str, how: str) -> None:
        new = self.folder / f"copy-{os.urandom(8).hex()}"
        shutil.copytree(self.out, new, copy_function=shutil.copy2 if how == "other rows" else shutil.copy)
        shutil.rmtree(self.out)
        self.out = new

    def leave_out(self, run_id: str, _: str) -> None:
        self.left_out = [] if self.left_out else [("rankings", run_id)]


EVENTS = [name for name, value in vars(History).items() if callable(value) and not name.startswith("_")]


@pytest.mark.long
@given(
    st.lists(st.tuples(st.sampled_from(EVENTS), st.sampled_from(RUNS), st.sampled_from(sorted(CHANGES)), st.booleans()))
)
@example([("change", "a", "other rows", False)])
@example([("rows_changed_by_another_program", "a", "other rows", False)])
@example([("run", "c", "", False), ("change", "c", "wider numbers", False)])
@example([("leave_out", "a", "", False), ("killed", "a", "other rows", False)])
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_after_any_history_the_file_equals_one_from_scratch(
    template: Path, tmp_path: Path, events: list[tuple[str, str, str, bool]]
) -> None:
    history = History(tmp_path / os.urandom(8).hex(), template)
    history.folder.mkdir(exist_ok=True)
    for event, run_id, how, is_built in events:
        getattr(history, event)(run_id, how)
        if is_built:
            history.build()
    history.build()
    appended = contents(history.file, history.folder)
    assert not Path(f"{history.file}.wal").exists()
    history.file.unlink()
    history.build()
    assert appended == contents(history.file, history.folder)
    shutil.rmtree(history.folder)


def test_files_of_runs_in_the_file_are_not_read_again(template: Path, tmp_path: Path) -> None:
    for run_id in RUNS:
        finish(tmp_path, template, run_id)
        warehouse.build(str(tmp_path))
        for path in tmp_path.glob(f"*/{run_id}/*.parquet"):
            before = path.stat()
            path.write_bytes(b"x" * before.st_size)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with duckdb.connect(str(tmp_path / warehouse.FILE_NAME), read_only=True) as connection:
        assert connection.execute("SELECT run_id FROM runs").fetchall() == [(run_id,) for run_id in RUNS]


def test_a_reader_that_has_the_file_open_goes_on_reading_the_old_one(template: Path, tmp_path: Path) -> None:
    finish(tmp_path, template, "a")
    with duckdb.connect(warehouse.build(str(tmp_path)), read_only=True) as reader:
        finish(tmp_path, template, "b")
        path = warehouse.build(str(tmp_path))
        assert reader.execute("SELECT DISTINCT run_id FROM rankings").fetchall() == [("a",)]
    with duckdb.connect(path, read_only=True) as connection:
        assert connection.execute("SELECT DISTINCT run_id FROM rankings ORDER BY ALL").fetchall() == [("a",), ("b",)]


def test_runs_in_the_file_are_not_fetched_again_from_a_bucket(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_filesystem, "FILES", stored := {})
    for run_id in ("a", "b"):
        finish(tmp_path, template, run_id)
        for path in tmp_path.glob(f"*/{run_id}/*.parquet"):
            stored[f"mem://bucket/out/{path.relative_to(tmp_path).as_posix()}"] = path.read_bytes()
        written = stored[warehouse.build("mem://bucket/out")]
        stored |= {path: b"x" * len(rows) for path, rows in stored.items() if path.endswith(".parquet")}
    write(tmp_path / "remote.duckdb", written)
    local = contents(Path(warehouse.build(str(tmp_path))), tmp_path)
    assert contents(tmp_path / "remote.duckdb", tmp_path) == local
