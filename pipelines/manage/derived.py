"""Files derived from a finished run's tables: `results.duckdb`, and the changes since a baseline run."""

import logging

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InFolder, sizes_of
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError

MOST_BYTES = 64 << 20  # maximum bytes to read from one table of a run
_logger = logging.getLogger(__name__)


def sample_rows(results: Results, most_bytes: int = MOST_BYTES) -> Results:
    """A run's results, with a sample of the rows in large tables; all rows if no table is large.

    A job on a cluster may write a terabyte of rankings. Of tables that grow with the queries, only the first files are
    read, which are a random sample of the queries.
    """
    stored = InFolder(results.output, results.run_id, most_bytes)
    return Results(results.output, results.run_id, stored) if stored.partial_reads() else results


def left_out(output: str) -> list[tuple[str, str]]:
    """The tables and runs in a folder with too many rows for `results.duckdb`, unless it already has them."""
    large = [
        (name, run_id)
        for run_id in warehouse.finished_runs(output)
        for name in tables.LARGE
        if sum(sizes_of(output, name, run_id).values()) > MOST_BYTES
    ]
    return warehouse.without_rows(output, large) if large else []


def build_duckdb(output: str, run_id: str, *, all_rows: bool) -> str:
    """Write the DuckDB file, and warn about rows that it leaves out; return its path."""
    if all_rows or not (omitted := left_out(output)):
        return warehouse.build(output)
    path = warehouse.build(output, omitted)
    if names := [name for name, omitted_run in omitted if omitted_run == run_id]:
        advice = "--all-rows adds them"
        _logger.warning(
            "%s omits the rows of %s, which are in %s; %s", warehouse.FILE_NAME, ", ".join(names), output, advice
        )
    return path


def monitor(results: Results) -> None:
    """Write the changes since the baseline run to the table `monitor`."""
    from rankbeam.pipelines.gates.checks import tolerances_of
    from rankbeam.pipelines.monitor.changes import monitor_run  # few experiments need it
    from rankbeam.pipelines.monitor.show import store

    try:
        nights = monitor_run(results)
    except InputError as error:  # its gates are missed with the same message
        _logger.warning("%s", error)
        return
    for warning in nights.warnings:
        _logger.warning("%s", warning)
    if nights.changes:
        store(nights, tolerances_of(results, None))
