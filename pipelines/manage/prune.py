"""Delete finished runs of an output folder or of BigQuery.

The latest run of an experiment, the baseline run that it is monitored against, and the ledger always stay.
"""

import glob
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from rankbeam.pipelines.gates.gates import MONITOR
from rankbeam.pipelines.manage.derived import left_out
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.tabular import WHOLE, Screen, Table
from rankbeam.transforms.clients.bigquery.names import DatasetName, is_table
from rankbeam.transforms.clients.bigquery.results import delete_runs
from rankbeam.transforms.clients.search import index_folder
from rankbeam.transforms.clients.storage import files, gcs, matching
from rankbeam.transforms.clients.storage.parquet import run_folder
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError, json_text

_MARK = "deleting"


def needless(
    runs: Sequence[Results], keep: int, older_than: float | None, now: datetime | None = None
) -> list[Results]:
    """The runs to delete: for each experiment, all except the latest ones and the baselines."""
    baselines = set(_baselines(runs))
    limit = None if older_than is None else (now or datetime.now(UTC)) - timedelta(days=older_than)
    old_runs, later = list[Results](), Counter[str]()
    for run in reversed(runs):
        is_old = limit is None or run.execution[1] < limit
        if later[run.experiment] >= keep and is_old and (run.experiment, run.run_id) not in baselines:
            old_runs.append(run)
        later[run.experiment] += 1
    return old_runs[::-1]


def _baselines(runs: Sequence[Results]) -> Iterator[tuple[str, str]]:
    """The runs that each experiment is monitored against, by experiment and id."""
    firsts = {run.experiment: run.run_id for run in reversed(runs)}
    for name, latest in {run.experiment: run for run in runs}.items():
        # The command `monitor` may have named another run, even if the experiment has no key for it, and may not yet
        # have been called for the latest run.
        own = (run for run in reversed(runs) if run.experiment == name)
        changes = next(filter(None, (run.rows("monitor", ["baseline_run"]) for run in own)), [])
        yield from ((name, row["baseline_run"]) for row in changes)
        with suppress(InputError, AttributeError):  # an experiment that cannot be read names no baseline
            experiment = latest.experiment_file.value
            is_gate = any(gate.get("value") == MONITOR for gate in experiment.get("gates") or ())
            if is_gate or "monitor" in experiment:
                yield name, (experiment.get("monitor") or {}).get("baseline") or firsts[name]


def delete(output: str, runs: Sequence[Results]) -> None:
    """Delete all rows of runs, and rebuild the folder's DuckDB file if there is one; complete killed deletions.

    In a folder, the row in `runs` is deleted first, so that no reader sees a partial run. A file in its place shows
    that the run has other rows.
    """
    if is_table(output):
        delete_runs(DatasetName.parse(output), [run.execution for run in runs])
        return
    run_ids = [*half_deleted(output), *(run.run_id for run in runs)]
    for run_id in run_ids:
        files.write(files.join(run_folder(output, "runs", run_id), _MARK), b"\n")
        others = [run_folder(output, table, run_id) for table in tables.TABLES if table != "runs"]
        _delete([*_rows(output, run_id), *others])
    if files.exists(files.join(output, warehouse.FILE_NAME)):
        warehouse.build(output, left_out(output))
    _delete([run_folder(output, "runs", run_id) for run_id in run_ids])


def half_deleted(output: str) -> list[str]:
    """The runs of a folder whose deletion was killed."""
    pattern = files.join(glob.escape(output), "runs", "*", _MARK)
    marks = [] if is_table(output) else matching.matches(pattern)
    return [run_id for mark in marks if not _rows(output, run_id := files.parent(mark).rpartition("/")[2])]


def _rows(output: str, run_id: str) -> list[str]:
    return matching.matches(files.join(glob.escape(run_folder(output, "runs", run_id)), "*.parquet"))


def _delete(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            files.delete(path)
        except OSError as error:
            problem = f"cannot be deleted ({error.strerror or error}); the same command then deletes what is left"
            raise InputError(problem, path=path) from error


FOLDER = "indexes"
DAYS = 30.0  # by default, an index that no run has used for this long is not needed


def unused_indexes(output: str, days: float) -> list[index_folder.KeptIndex]:
    """The indexes in an output folder that no run has used for some days."""
    if is_table(output):
        raise InputError("is not a folder with results, beside which indexes are kept", path=output)
    limit = datetime.now(UTC) - timedelta(days=days)
    try:
        return [index for index in index_folder.kept_indexes(files.join(output, FOLDER)) if index.used < limit]
    except files.errors(output) as error:
        raise InputError(f"cannot be listed: {gcs.error_text(error, output)}", path=output) from error


def delete_indexes(indexes: Sequence[index_folder.KeptIndex]) -> None:
    """Delete indexes; a run that needs one builds it again."""
    for index in indexes:
        try:
            index_folder.delete([index])
        except files.errors(index.folder) as error:
            raise InputError(f"cannot be deleted: {gcs.error_text(error, index.folder)}", path=index.folder) from error


def as_text(indexes: Sequence[index_folder.KeptIndex], screen: Screen = WHOLE) -> str:
    if not indexes:
        return "every index was used since then; nothing to delete"
    rows = [[index.folder, f"{index.used:%Y-%m-%d %H:%M:%S}", f"{index.size / 1e6:,.1f}"] for index in indexes]
    return screen.table(Table(["index", "used (UTC)", "MB"], rows, 2))


def as_json(indexes: Sequence[index_folder.KeptIndex]) -> str:
    rows = [{"folder": index.folder, "used": index.used.isoformat(), "bytes": index.size} for index in indexes]
    return json_text({"indexes": rows})
