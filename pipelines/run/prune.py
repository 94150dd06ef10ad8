"""Delete finished runs of an output folder: never the latest of an experiment, and never the ledger."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.shown import left_out
from rankbeam.transforms.clients.bigquery.read_source import is_table
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.write.tables import run_folder


def needless(
    runs: Sequence[Results], keep: int, older_than: float | None, now: datetime | None = None
) -> list[Results]:
    """The runs to delete: of each experiment, all but the latest."""
    before = None if older_than is None else (now or datetime.now(UTC)) - timedelta(days=older_than)
    chosen = []
    for place, run in enumerate(runs):
        later = sum(other.experiment == run.experiment for other in runs[place + 1 :])
        if later >= keep and (before is None or run.execution[1] < before):
            chosen.append(run)
    return chosen


def delete(output: str, runs: Sequence[Results]) -> None:
    """Delete all rows of runs, and rebuild the folder's DuckDB file where it has one.

    The row in `runs` goes first: a deletion that is interrupted leaves rows that nothing reads, and no half run.
    """
    if is_table(output):
        problem = "rows of BigQuery expire by the tables' own settings, or are deleted there: DELETE … WHERE run_id = …"
        raise InputError(problem, path=output)
    for run in runs:
        for table in ("runs", *(name for name in tables.TABLES if name != "runs")):
            folder = run_folder(output, table, run.run_id)
            try:
                files.delete(folder)
            except OSError as error:
                problem = (
                    f"cannot be deleted ({error.strerror or error}); the run {run.run_id} is gone, its rows are not"
                )
                raise InputError(problem, path=folder) from error
    if files.exists(files.join(output, warehouse.FILE_NAME)):
        warehouse.build(output, left_out(output))
