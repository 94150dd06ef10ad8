"""Derived from the tables of a finished run: `results.duckdb`, and the changes since a baseline run."""

import logging

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import InFolder, sizes_of
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError

MOST_BYTES = 64 << 20
"""The most bytes of a run's table that are read."""
_logger = logging.getLogger(__name__)


def sampled(results: Results, most_bytes: int = MOST_BYTES) -> Results:
    """The results of a run, with a sample of the rows of its large tables; the whole where none is large.

    A job on a cluster may write a terabyte of rankings. Tables that grow with the queries are read by their first
    files, which are a random sample of the queries.
    """
    stored = InFolder(results.output, results.run_id, most_bytes)
    return Results(results.output, results.run_id, stored) if stored.unread() else results


def left_out(output: str, most_bytes: int = MOST_BYTES) -> list[tuple[str, str]]:
    """The tables and runs of a folder whose rows are too many for `results.duckdb`."""
    return [
        (name, run_id)
        for run_id in warehouse.finished_runs(output)
        for name in tables.LARGE
        if sum(sizes_of(output, name, run_id).values()) > most_bytes
    ]


def build_duckdb(output: str, run_id: str, *, all_rows: bool) -> str:
    """Write the DuckDB file, and warn about the rows that it leaves out; return its path."""
    if all_rows or not (left := left_out(output)):
        return warehouse.build(output)
    path = warehouse.build(output, left)
    if names := [name for name, of_run in left if of_run == run_id]:
        advice = "add --all-rows to have them in it, too"
        _logger.warning(
            "%s has no rows of %s: they stay in %s; %s", warehouse.FILE_NAME, ", ".join(names), output, advice
        )
    return path


def monitor(results: Results) -> None:
    """Write the changes since the baseline run to the table `monitor`."""
    from rankbeam.pipelines.monitor.changes import monitored  # few experiments need it
    from rankbeam.pipelines.monitor.show import Tolerances, store

    try:
        nights = monitored(results)
    except InputError as error:  # its gates are missed, and say the same
        _logger.warning("%s", error)
        return
    for warning in nights.warnings:
        _logger.warning("%s", warning)
    if nights.changes:
        store(nights, Tolerances.of(results, None))
