"""The local warehouse: one DuckDB file with the rows of the Parquet tables, and views over them."""

import gc
import glob
import shutil
import tempfile
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import duckdb

from rankbeam.transforms.clients.storage import files, matching, parquet, spill
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError

FILE_NAME = "results.duckdb"

_ROWS_OF_A_GROUP = 30_720
"""Several threads write full groups at the same time; with DuckDB's default size, loading takes twice as long."""

_MEMORY, _MORE_MEMORY = "160MB", "1GB"  # for long rankings, of which DuckDB reads 2,048 at once
"""By default DuckDB takes most of the machine's memory, and keeps written data in it."""

_UNFINISHED, _ABANDONED_S = ".results-", 86_400.0

_ALWAYS = {*tables.TABLES, "leaderboard", "per_query"} - tables.ADDED
"""Tables and views that every version of rankbeam writes to the file."""


def build(output: str, left_out: Collection[tuple[str, str]] = ()) -> str:
    """Rebuild `results.duckdb` from all finished runs and return its path; until complete, it has another name."""
    path = files.join(output, FILE_NAME)
    try:
        while not _is_current(finished_runs(output), output, path, left_out):
            pass  # a run that ended meanwhile may have written its file first, and this one has just replaced it
    except duckdb.Error as error:
        problem = f"cannot be written: {str(error).splitlines()[0]}"
        raise InputError(problem, path=path) from error
    return path


def _is_current(runs: list[str], output: str, path: str, left_out: Collection[tuple[str, str]]) -> bool:
    """Write the file; return whether these are still the finished runs."""
    try:
        with suppress(duckdb.Error):  # too little memory has several errors
            _build(runs, output, path, left_out, memory_limit=_MEMORY)
            return runs == finished_runs(output)
        _build(runs, output, path, left_out, memory_limit=_MORE_MEMORY, threads=1)
    except (InputError, duckdb.Error):
        if runs == finished_runs(output):
            raise  # otherwise a run was deleted meanwhile
    return runs == finished_runs(output)


def _build(runs: list[str], output: str, path: str, left_out: Collection[tuple[str, str]], **config: str | int) -> None:
    _delete_abandoned(output)
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=output if files.is_local(output) else None) as folder:
        unfinished = Path(folder) / FILE_NAME
        gc.collect()  # reference cycles of an ended pipeline hold tables
        spill.release_unused_memory()  # DuckDB allocates its own memory
        with duckdb.connect(config={**config, "temp_directory": folder}) as connection:
            place = str(unfinished).replace("'", "''")
            connection.execute(f"ATTACH '{place}' AS results (ROW_GROUP_SIZE {_ROWS_OF_A_GROUP})")
            connection.execute("USE results")
            connection.execute("BEGIN")  # otherwise each table and view would be written to disk separately
            for name in tables.TABLES:
                included = [run_id for run_id in runs if (name, run_id) not in left_out]
                parts = [_local(part, folder) for run_id in included for part in _parts(output, name, run_id)]
                # Rows of large tables may be in any order: several threads append them, which is a third faster.
                connection.execute(f"SET preserve_insertion_order = {name not in tables.LARGE}")
                _create(connection, name, parts)
            connection.execute(views.for_duckdb())
            connection.execute("COMMIT")
            connection.execute("USE memory")
            connection.execute("DETACH results")
        if files.is_local(output):
            unfinished.replace(path)
        else:
            files.write(path, unfinished.read_bytes())


def _delete_abandoned(output: str) -> None:
    """Delete the folders of killed processes."""
    for folder in Path(output).glob(f"{_UNFINISHED}*") if files.is_local(output) else ():
        with suppress(FileNotFoundError):  # another process has finished
            if folder.stat().st_mtime < time.time() - _ABANDONED_S:
                shutil.rmtree(folder, ignore_errors=True)


def _create(connection: duckdb.DuckDBPyConnection, name: str, parts: list[str]) -> None:
    """Make a table from Parquet files. Columns that older releases lack are null; tables that they lack are empty."""
    connection.register("columns_of_now", tables.TABLES[name].empty_table())
    rows = "UNION ALL BY NAME FROM read_parquet(?, union_by_name = true)" if parts else ""
    connection.execute(f'CREATE TABLE "{name}" AS FROM columns_of_now {rows}', [parts] if parts else [])


def refuse_foreign(output: str) -> None:
    """Check that `build` can write its file, and would only replace a file made by `build`."""
    path = Path(files.join(output, FILE_NAME))
    if not files.is_local(output):
        return
    if (mark := next((mark for mark in "?\\" if mark in str(path.absolute())), None)) is not None:
        problem = f"is in a folder with `{mark}` in its name, where DuckDB cannot write; choose another --output"
        raise InputError(problem, path=str(path))
    if not path.exists():
        return
    files.open_raw(str(path)).close()  # for DuckDB, a file without permission is one that it did not write
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            query = "SELECT table_name, table_type FROM information_schema.tables"
            kinds = dict(connection.execute(query).fetchall())
    except duckdb.Error as error:
        if "lock" in str(error):
            problem = "is open for writing in another program; close it there first"
            raise InputError(problem, path=str(path)) from error
        kinds = {}
    if not kinds.keys() >= _ALWAYS:
        raise InputError(
            "was not made by rankbeam and would be overwritten; move it, or choose another --output", path=str(path)
        )
    ours = dict.fromkeys(tables.TABLES, "BASE TABLE") | dict.fromkeys(views.sources(), "VIEW")
    if extra := sorted(name for name, kind in kinds.items() if ours.get(name) != kind):
        problem = f"holds {', '.join(extra)}, and is rebuilt by every run; keep your own tables and views elsewhere"
        raise InputError(problem, path=str(path))


def finished_runs(output: str) -> list[str]:
    """The ids of the complete runs, oldest id first."""
    paths = matching.matches(files.join(glob.escape(output), "runs", "*", "part-*.parquet"))
    if not paths:
        raise InputError(f"holds no finished run{_reason(output)}", path=output)
    return sorted(path.replace("\\", "/").split("/")[-2] for path in paths)


def _reason(output: str) -> str:
    if not files.is_local(output) or Path(output).is_dir():
        return ""
    if Path(output).exists():
        return "; it is a file, not the output folder of a run"
    return f"; there is no such folder{matching.nearest(output)}"


def _parts(output: str, name: str, run_id: str) -> list[str]:
    """The files of a run's table; empty if the run is older than the table."""
    try:
        paths = matching.expand(files.join(output, name, run_id))
    except InputError:
        if name in tables.ADDED:
            return []
        raise
    parquet.refuse_incomplete(paths)
    return paths


def _local(path: str, folder: str) -> str:
    """The path of a local copy; a local file is not copied."""
    if files.is_local(path):
        return path
    copy = tempfile.NamedTemporaryFile(dir=folder, suffix=".parquet", delete=False)  # noqa: SIM115  DuckDB reads it by name
    with files.open_raw(path) as source, copy as target:
        shutil.copyfileobj(source, target)
    return copy.name
