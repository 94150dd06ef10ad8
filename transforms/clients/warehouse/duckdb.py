"""The local warehouse: one DuckDB file with the rows of the Parquet tables, and views over them."""

import gc
import glob
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.storage import files, matching, parquet, spill
from rankbeam.transforms.clients.warehouse import views
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError

FILE_NAME = "results.duckdb"

_ROWS_OF_A_GROUP = 30_720
"""Several threads write full groups at the same time; with DuckDB's default size, loading takes twice as long."""

_MEMORY, _MORE_MEMORY = "160MB", "1GB"  # for long rankings, of which DuckDB reads 2,048 at once
"""By default DuckDB takes most of the machine's memory, and keeps written data in it."""

_FEW_BYTES = 16 << 20
"""Arrow's tables may take this much memory for the sake of 0.1 s, in which Python would find those that are unused."""

_UNFINISHED, _ABANDONED_S = ".results-", 86_400.0

_ALWAYS = {*tables.TABLES, "leaderboard", "per_query"} - tables.ADDED
"""Tables and views that every version of rankbeam writes to the file."""

_Contents = dict[str, dict[str, list[matching.Version]]]  # the Parquet files of each finished run and table


def build(output: str, left_out: Collection[tuple[str, str]] = ()) -> str:
    """Write `results.duckdb` with all finished runs and return its path; until complete, it has another name."""
    path = files.join(output, FILE_NAME)
    try:
        while not _is_current(_contents(output, left_out), output, path, left_out):
            pass  # a run that ended meanwhile may have written its file first, and this one has just replaced it
    except duckdb.Error as error:
        problem = f"cannot be written: {str(error).splitlines()[0]}"
        raise InputError(problem, path=path) from error
    return path


def _contents(output: str, left_out: Collection[tuple[str, str]]) -> _Contents:
    contents: _Contents = {run_id: {} for run_id in finished_runs(output)}
    for name in tables.TABLES:
        versions = matching.versions_below(files.join(output, name))
        for run_id, included in contents.items():
            if (name, run_id) not in left_out:
                included[name] = versions.get(run_id, [])
    return contents


def _is_current(contents: _Contents, output: str, path: str, left_out: Collection[tuple[str, str]]) -> bool:
    """Write the file; return whether the runs did not change meanwhile."""
    try:
        with suppress(duckdb.Error, OSError, pa.ArrowInvalid):  # too little memory has several errors, as damaged files
            _write(contents, output, path, is_new=False, memory_limit=_MEMORY)
            return contents == _contents(output, left_out)
        _write(contents, output, path, is_new=True, memory_limit=_MORE_MEMORY, threads=1)
    except (InputError, duckdb.Error):
        if contents == _contents(output, left_out):
            raise  # otherwise a run was deleted meanwhile
    return contents == _contents(output, left_out)


def _write(contents: _Contents, output: str, path: str, *, is_new: bool, **config: str | int) -> None:
    _refuse_incomplete(contents, output)
    _delete_abandoned(output)
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=output if files.is_local(output) else None) as folder:
        unfinished = Path(folder) / FILE_NAME
        changed = time.time() // 2 * 2 if files.is_local(output) else 0.0  # every filesystem can store even seconds
        if pa.total_allocated_bytes() > _FEW_BYTES:
            gc.collect()  # reference cycles of an ended pipeline hold tables
        spill.release_unused_memory()  # DuckDB allocates its own memory
        config["temp_directory"] = folder
        if is_new or not _append(contents, path, unfinished, changed, config):
            unfinished.unlink(missing_ok=True)
            _create(contents, unfinished, changed, config)
        if files.is_local(output):
            os.utime(unfinished, (changed, changed))
            unfinished.replace(path)
            Path(f"{path}.wal").unlink(missing_ok=True)  # of a killed program; DuckDB would not open the file
        else:
            files.write(path, unfinished.read_bytes())


def _append(contents: _Contents, path: str, copy: Path, changed: float, config: Mapping[str, str | int]) -> bool:
    """Add the missing runs to a copy of the file; return False if the rest is not what a new file would contain."""
    if not files.exists(path):
        return False
    with files.open_raw(path) as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target)
    last_changed = _time_of_change(path)  # looked up after copying, so that a change meanwhile is noticed
    with _opened(copy, config) as connection:
        run_ids = [run_id for (run_id,) in connection.execute("SELECT run_id FROM runs").fetchall()]
        query = "SELECT comment FROM duckdb_tables() WHERE database_name = 'results' AND table_name = 'runs'"
        if connection.execute(query).fetchone() != (_digest(contents, run_ids, last_changed),):
            return False
        added = sorted(contents.keys() - run_ids)
        for name, schema in tables.TABLES.items():
            parts = _parts(contents, added, name, copy.parent)
            stored = [pq.read_metadata(part) for part in parts]
            if any(metadata.schema.to_arrow_schema() != schema for metadata in stored):
                return False  # the table may need other columns
            if any(metadata.num_rows for metadata in stored):
                _set_order(connection, name)
                connection.execute(f'INSERT INTO "{name}" BY NAME FROM read_parquet(?)', [parts])
        _sign(connection, _digest(contents, [*run_ids, *added], changed))
    return True


def _create(contents: _Contents, path: Path, changed: float, config: Mapping[str, str | int]) -> None:
    """Make a new file. Columns that older releases lack are null; tables that they lack are empty."""
    with _opened(path, config) as connection:
        for name, schema in tables.TABLES.items():
            parts = _parts(contents, contents, name, path.parent)
            _set_order(connection, name)
            connection.register("columns_of_now", schema.empty_table())
            rows = "UNION ALL BY NAME FROM read_parquet(?, union_by_name = true)" if parts else ""
            connection.execute(f'CREATE TABLE "{name}" AS FROM columns_of_now {rows}', [parts] if parts else [])
        connection.execute(views.for_duckdb())
        _sign(connection, _digest(contents, contents, changed))


@contextmanager
def _opened(path: Path, config: Mapping[str, str | int]) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={**config}) as connection:
        place = str(path).replace("'", "''")
        connection.execute(f"ATTACH '{place}' AS results (ROW_GROUP_SIZE {_ROWS_OF_A_GROUP})")
        connection.execute("USE results")
        connection.execute("BEGIN")  # otherwise each table and view would be written to disk separately
        yield connection
        connection.execute("COMMIT")
        connection.execute("USE memory")
        connection.execute("DETACH results")


def _set_order(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Let several threads write the rows of large tables in any order, which is a third faster."""
    connection.execute(f"SET preserve_insertion_order = {name not in tables.LARGE}")


def _digest(contents: _Contents, run_ids: Iterable[str], changed: float) -> str:
    """A digest of all that decides the rows and views of a file with these runs, and of its own time of change.

    Whatever another program changes in the file, the time changes with it.
    """
    versions = [
        (run_id, name, [(path.rpartition("/")[2], *rest) for path, *rest in parts])
        for run_id in run_ids
        for name, parts in contents.get(run_id, {"": []}).items()
    ]
    whole = repr((duckdb.__version__, tables.TABLES, views.for_duckdb(), versions, changed))
    return hashlib.sha256(whole.encode()).hexdigest()


def _sign(connection: duckdb.DuckDBPyConnection, digest: str) -> None:
    connection.execute(f"COMMENT ON TABLE runs IS '{digest}'")


def _time_of_change(path: str) -> float:
    """The time in seconds; 0 on other filesystems, where programs do not change files in place."""
    return Path(path).stat().st_mtime if files.is_local(path) else 0.0


def _delete_abandoned(output: str) -> None:
    """Delete the folders of killed processes."""
    for folder in Path(output).glob(f"{_UNFINISHED}*") if files.is_local(output) else ():
        with suppress(FileNotFoundError):  # another process has finished
            if folder.stat().st_mtime < time.time() - _ABANDONED_S:
                shutil.rmtree(folder, ignore_errors=True)


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


def without_rows(output: str, parts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those tables and runs of which the file has no row; all if there is no file, or a damaged one."""
    path = files.join(output, FILE_NAME)
    query = 'SELECT 1 FROM "{}" WHERE run_id = ? LIMIT 1'
    with (
        suppress(duckdb.Error, FileNotFoundError),
        tempfile.TemporaryDirectory() as folder,
        duckdb.connect(_local(path, Path(folder)), read_only=True) as stored,
    ):
        return [part for part in parts if not stored.execute(query.format(part[0]), [part[1]]).fetchone()]
    return [*parts]


def finished_runs(output: str) -> list[str]:
    """The ids of the complete runs, oldest id first."""
    paths = matching.matches(files.join(glob.escape(output), "runs", "*", "part-*.parquet"))
    if not paths:
        raise InputError(f"holds no finished run{_reason(output)}", path=output)
    return sorted(path.replace("\\", "/").split("/")[-2] for path in paths)


def _reason(output: str) -> str:
    if not files.is_local(output):
        return ""
    if Path(output).is_dir():
        below = matching.matches(files.join(glob.escape(output), "*", "runs", "*", "part-*.parquet"))
        return f"; did you mean {str(Path(below[0]).parents[2])!r}?" if below else ""
    if Path(output).exists():
        return "; it is a file, not the output folder of a run"
    return f"; there is no such folder{matching.nearest(output)}"


def _refuse_incomplete(contents: _Contents, output: str) -> None:
    """Refuse finished runs that lack files; only tables that are newer than the run may be missing."""
    for run_id, included in contents.items():
        for name, versions in included.items():
            if not versions and name not in tables.ADDED:
                raise InputError("has no Parquet files; copy the folder again", path=files.join(output, name, run_id))
            parquet.refuse_incomplete([path for path, *_ in versions])


def _parts(contents: _Contents, run_ids: Iterable[str], name: str, folder: Path) -> list[str]:
    """The files of a table, as local paths."""
    return [_local(path, folder) for run_id in run_ids for path, *_ in contents[run_id].get(name, [])]


def _local(path: str, folder: Path) -> str:
    """The path of a local copy; a local file is not copied."""
    if files.is_local(path):
        return path
    copy = tempfile.NamedTemporaryFile(dir=folder, suffix=".parquet", delete=False)  # noqa: SIM115  DuckDB reads it by name
    with files.open_raw(path) as source, copy as target:
        shutil.copyfileobj(source, target)
    return copy.name
