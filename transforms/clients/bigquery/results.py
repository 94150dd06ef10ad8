"""Finished runs in BigQuery: list them, read their rows in the files' Arrow types, and delete them.

A run is deleted in one transaction, so readers see all of it or nothing. Each statement names the run and its start.
Both are parameters, which are constants to BigQuery: it rewrites only the partition of that day, and other days keep
their lower price for old data.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from rankbeam.transforms.clients.bigquery import read
from rankbeam.transforms.clients.bigquery.errors import BigQueryError
from rankbeam.transforms.clients.bigquery.names import SCHEME, DatasetName, Scalar, TableSource
from rankbeam.transforms.clients.bigquery.session import PATIENCE, Patience, Session, parameters
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError

# A function of constants is constant, so that only the partition of that day is read.
_OF_RUN = " WHERE run_id = @run_id AND started_at = TIMESTAMP_MICROS(@started_us)"


@dataclass(frozen=True)
class StoredRun:
    """A finished run."""

    dataset: DatasetName
    run_id: str
    experiment: str
    started_at: datetime


def place_of(dataset: DatasetName) -> str:
    return f"{SCHEME}{dataset}"


def finished_runs(dataset: DatasetName) -> list[StoredRun]:
    with _refusals(dataset, "runs"):  # its error names the existing tables
        read.columns_of(TableSource(table=str(dataset.table("runs")), project=dataset.project))
    rows = [
        row for batch in _rows(dataset, "runs", ["run_id", "experiment", "started_at"]) for row in batch.to_pylist()
    ]
    return [StoredRun(dataset, row["run_id"], row["experiment"], row["started_at"]) for row in rows]


def batches(run: StoredRun, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a run; none if the dataset was made by an earlier release without this table."""
    if name in tables.ADDED and not _exists(run.dataset, name):
        return
    started_us = pa.scalar(run.started_at, tables.TABLES[name].field("started_at").type).value
    count = 0
    for batch in _rows(run.dataset, name, columns, _OF_RUN, {"run_id": run.run_id, "started_us": started_us}):
        count += batch.num_rows
        yield batch
    if not count and name in tables.NEVER_EMPTY:
        problem = f"{name} has no rows of run {run.run_id!r} any more; if another execution replaced it, try again"
        raise InputError(problem, path=place_of(run.dataset))


def _rows(
    dataset: DatasetName,
    name: str,
    columns: Sequence[str],
    where: str = "",
    parameters: Mapping[str, Scalar] | None = None,
) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([tables.TABLES[name].field(column) for column in columns])
    with _refusals(dataset, name):
        absent = _missing_columns(dataset, name, schema)
        selected = ", ".join(f"`{column}`" for column in schema.names if column not in absent)
        query = f"SELECT {selected} FROM {dataset.table(name).quoted}{where}"  # noqa: S608  names are checked
        source = TableSource(project=dataset.project, query=query, parameters=dict(parameters or {}))
        for batch in read.batches(source, []):
            arrays = [
                pa.nulls(batch.num_rows, field.type)
                if field.name in absent
                else batch.column(field.name).cast(field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _exists(dataset: DatasetName, name: str) -> bool:
    with _refusals(dataset, name):
        return read.exists(TableSource(table=str(dataset.table(name)), project=dataset.project))


def _missing_columns(dataset: DatasetName, name: str, schema: pa.Schema) -> set[str]:
    """The nullable columns that a table of an older release lacks."""
    if all(not field.nullable for field in schema):
        return set()
    there = read.columns_of(TableSource(table=str(dataset.table(name)), project=dataset.project))
    known = {column.lower() for column in there}  # as BigQuery compares names
    return {field.name for field in schema if field.nullable and field.name not in known}


@contextmanager
def _refusals(dataset: DatasetName, name: str) -> Iterator[None]:
    """Name the dataset and the table, rather than a query that users did not write."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error.problem}", path=place_of(dataset)) from error
    except pa.ArrowInvalid as error:
        raise InputError(f"{name}: rows are not as rankbeam writes them: {error}", path=place_of(dataset)) from error


def delete_runs(dataset: DatasetName, runs: Iterable[tuple[str, datetime]], patience: Patience = PATIENCE) -> None:
    """Delete all rows of runs, by id and start; after a refusal, those before the one of the message are deleted."""
    session, run_id = Session(dataset, patience), None
    try:
        # In a fixed order, as publishing has it; `runs` first: what it does not list, no reader looks for.
        names = [name for name in ("runs", *sorted(tables.TABLES.keys() - {"runs"})) if session.table(name) is not None]
        for run_id, started_at in runs:
            _delete(session, names, run_id, started_at)
    except BigQueryError as error:
        which = "nothing was deleted" if run_id is None else f"the run {run_id} was not deleted, and none after it"
        raise InputError(f"{which}: {error.advice(dataset)}", path=place_of(dataset)) from error


def _delete(session: Session, names: list[str], run_id: str, started_at: datetime) -> None:
    script = "\n".join(
        [
            "BEGIN TRANSACTION;",
            *(
                f"DELETE FROM {session.dataset.table(name).quoted} WHERE run_id = @run_id AND started_at = @started_at;"  # noqa: S608  names are checked
                for name in names
            ),
            "COMMIT TRANSACTION;",
        ]
    )
    values = parameters(run_id=run_id, started_at=started_at)
    error = session.committed(lambda: session.outcome(f"rankbeam_delete_{uuid.uuid4().hex}", script, values))
    if error is not None:
        raise error
