"""Rows that the report and `results.duckdb` contain of a run whose rows are stored elsewhere: only those they show.

A job on a cluster may write a terabyte of rankings. Means, comparisons, failures and all other small tables are read
whole; of tables that grow with the queries, the first files, which are a random sample of the queries.
"""

from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.tables import LARGE, InFolder, sizes_of
from rankbeam.transforms.clients.warehouse import duckdb

MOST_BYTES = 64 << 20
"""Of the files of one table of one run."""


def sampled(results: Results, most_bytes: int = MOST_BYTES) -> Results:
    """The results of a run, with a sample of the rows of its large tables; the whole where none is large."""
    stored = InFolder(results.output, results.run_id, most_bytes)
    return Results(results.output, results.run_id, stored) if stored.unread() else results


def left_out(output: str, most_bytes: int = MOST_BYTES) -> list[tuple[str, str]]:
    """The tables and runs of a folder whose rows are too many for `results.duckdb`."""
    return [
        (name, run_id)
        for run_id in duckdb.finished_runs(output)
        for name in LARGE
        if sum(sizes_of(output, name, run_id).values()) > most_bytes
    ]
