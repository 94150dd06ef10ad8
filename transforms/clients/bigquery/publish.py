"""Publish a run: one transaction replaces the run's rows in all tables by those of the staging tables.

Readers see all of a run or nothing of it. The id of a job that publishes a run_id contains the execution that it
replaces and the number of the attempt. Therefore only one job at a time replaces an execution, the next one begins when
it has ended, and rows are replaced, never duplicated. One query finds the execution, however many were published
before. (BigQuery aborts one of two transactions that have a DELETE for the same table, but may commit two that only add
rows; a new run_id therefore deletes nothing, and does not wait for others.) Any attempt can be repeated.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

from tenacity import retry_if_exception

from rankbeam.transforms.clients.bigquery import errors, loads, tables
from rankbeam.transforms.clients.bigquery.errors import BigQueryError, ErrorKind, LoadFailed
from rankbeam.transforms.clients.bigquery.loads import RunFiles
from rankbeam.transforms.clients.bigquery.names import DatasetName, TableName
from rankbeam.transforms.clients.bigquery.session import IMPATIENT, PATIENCE, Patience, Session, parameters
from rankbeam.transforms.records import tables as schemas
from rankbeam.transforms.records.errors import InputError

_ROUNDS = 3
_OWN = "run_id = @run_id AND started_at = @started_at"
_OTHERS = "run_id != @run_id OR started_at != @started_at"
_MIXED = "the files are of several executions"
_TAKEN = "the run id is in use there by the experiment "
_TAKEN_BY_OTHERS = "run_id = @run_id AND experiment != @experiment"
_NAMES = (*(name for name in schemas.TABLES if name != "runs"), "runs")


def load_run(dataset: DatasetName, run_id: str, folders: Mapping[str, str], patience: Patience = PATIENCE) -> RunFiles:
    """Load a finished run, replacing the dataset's rows of that run_id; returns the files loaded."""
    session = Session(dataset, patience)
    try:
        run = loads.find_run(run_id, folders)
        _load(session, run)
    except (BigQueryError, InputError) as error:
        problem = error.advice(dataset) if isinstance(error, BigQueryError) else str(error)
        can_repeat = not (isinstance(error, BigQueryError) and error.kind is ErrorKind.CONFLICT)
        raise LoadFailed(f"run {run_id} was not loaded into {dataset}: {problem}", can_repeat=can_repeat) from error
    return run


def refuse_taken(dataset: DatasetName, run_id: str, experiment: str) -> None:
    """Refuse a run id that another experiment has in a dataset; loading reports a dataset that cannot be read."""
    query = f"SELECT experiment FROM {dataset.table('runs').quoted} WHERE {_TAKEN_BY_OTHERS} LIMIT 1"  # noqa: S608  names are checked
    try:
        rows = Session(dataset, IMPATIENT).rows(query, parameters(run_id=run_id, experiment=experiment))
    except BigQueryError:
        return
    for row in rows:
        problem = f"{_TAKEN}{row['experiment']}, so {experiment!r} cannot be loaded; choose another --run-id"
        raise InputError(problem, path=str(dataset))


def statements(dataset: DatasetName, key: str, replaced: Collection[str]) -> str:
    """One script, which publishes everything or changes nothing. Values are its parameters."""
    pairs = [(dataset.table(name), dataset.table(loads.staging_name(key, name))) for name in _NAMES]
    loaded = " UNION ALL ".join(f"SELECT run_id, started_at FROM {staging.quoted}" for _, staging in pairs)  # noqa: S608  names are checked
    runs = dataset.table("runs").quoted
    return "\n".join(
        [
            # Files of two executions that wrote to one folder at the same time are no run.
            f"SELECT ERROR('{_MIXED}') FROM ({loaded}) WHERE {_OTHERS};",  # noqa: S608
            "BEGIN TRANSACTION;",
            f"SELECT ERROR(CONCAT('{_TAKEN}', experiment)) FROM {runs} WHERE {_TAKEN_BY_OTHERS};",  # noqa: S608
            # Not by partition: an earlier execution may have begun on any day, and the clustering finds its rows.
            *(
                f"DELETE FROM {table.quoted} WHERE run_id = @run_id;"  # noqa: S608
                for table, _ in pairs
                if table.table in replaced
            ),
            *(_insert(table, staging) for table, staging in pairs),
            "COMMIT TRANSACTION;",
        ]
    )


def _run_rows(session: Session, run: RunFiles) -> tuple[frozenset[str], str]:
    """The tables of the dataset that have rows of the run_id, and the execution that wrote them."""
    tables_of_all = " UNION ALL ".join(
        f"SELECT run_id, started_at, '{name}' AS name FROM {session.dataset.table(name).quoted}"  # noqa: S608  names are checked
        for name in _NAMES
    )
    query = f"SELECT name, MAX(started_at) AS began FROM ({tables_of_all}) WHERE run_id = @run_id GROUP BY name"  # noqa: S608
    began = {row["name"]: row["began"] for row in session.rows(query, parameters(run_id=run.run_id))}
    return frozenset(began), began["runs"].isoformat() if "runs" in began else ""


def _insert(table: TableName, staging: TableName) -> str:
    columns = ", ".join(f"`{column}`" for column in schemas.TABLES[table.table].names)
    return f"INSERT INTO {table.quoted} ({columns}) SELECT {columns} FROM {staging.quoted} WHERE {_OWN};"  # noqa: S608


def _load(session: Session, run: RunFiles) -> None:
    key = run.key(str(session.dataset))
    _ = session.location
    session.patience.repeated(lambda: _load_once(session, run, key), retry_if_exception(_lost(key)), _ROUNDS)
    for name in _NAMES:
        with contextlib.suppress(BigQueryError):  # they expire later in any case
            session.drop(loads.staging_name(key, name))


def _load_once(session: Session, run: RunFiles, key: str) -> None:
    columns = {name: tables.ensure(session, name) for name in _NAMES}
    loads.load(session, run, key, columns)
    _publish(session, run, key)


def _lost(key: str) -> Callable[[BaseException], bool]:
    """True for a missing staging table: it may have expired, or another attempt at the same load has deleted it."""
    return lambda error: isinstance(error, BigQueryError) and error.kind is ErrorKind.MISSING and key in error.message


def _publish(session: Session, run: RunFiles, key: str) -> None:
    """Run the script, once no other job publishes the run_id."""
    error = session.committed(partial(next, _attempts(session, run, key)))
    if error is None:
        return
    if _MIXED in error.message:
        raise BigQueryError(ErrorKind.CONFLICT, f"{_MIXED}; run the experiment again")
    if _TAKEN in error.message:
        advice = f"this run belongs to the experiment {run.experiment}; run it again with another --run-id"
        raise BigQueryError(ErrorKind.CONFLICT, f"{error.message}; {advice}")
    raise error


def _attempts(session: Session, run: RunFiles, key: str) -> Iterator[BigQueryError | None]:
    """Yield the error of each job that publishes the run, or None for a job that has succeeded."""
    execution: str | None = None
    series, number = "", 0
    while True:
        before, (replaced, execution) = execution, _run_rows(session, run)
        if before != execution:
            series = f"rankbeam_publish_{loads.key_of(str(session.dataset), run.run_id, execution)}"
            number = max(0, _jobs_before(session, series) - 1)  # the last one may be running
        job = session.job(f"{series}_{number}")
        number += 1
        if job is not None and job.state == "DONE":
            continue  # it failed, or this execution was published again since
        # These rows stay until the job begins: a change needs the job of this number.
        script = job.query if job else statements(session.dataset, key, replaced)
        values = parameters(run_id=run.run_id, started_at=run.started_at, experiment=run.experiment)
        job = _wait_for_job(session, job or session.query(f"{series}_{number - 1}", script, values))
        if loads.staging_name(key, "runs") not in job.query:
            continue  # it published another execution
        yield errors.of_job(job)


def _jobs_before(session: Session, series: str) -> int:
    """Number of jobs that replaced one execution: more than one only if some failed, or it was published again."""
    last, absent = -1, 0
    while session.job(f"{series}_{absent}") is not None:
        last, absent = absent, 2 * absent + 1
    while absent - last > 1:
        middle = (last + absent) // 2
        last, absent = (last, middle) if session.job(f"{series}_{middle}") is None else (middle, absent)
    return absent


def _wait_for_job(session: Session, job: Any) -> Any:
    try:
        return session.wait(job)
    except BigQueryError as error:
        may = f"the job {job.job_id} may still be running; once it succeeds, the whole run is visible"
        raise BigQueryError(error.kind, f"{error.message}; {may}") from error
