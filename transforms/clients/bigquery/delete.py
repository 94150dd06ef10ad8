"""Delete runs from a dataset: one transaction for each run, so readers see all of a run or nothing of it.

Each statement names the run and its start. Both are parameters, which are constants to BigQuery: it reads and rewrites
only the partition of that day, and other days keep their lower price for long-term storage.
"""

import uuid
from collections.abc import Iterable
from datetime import datetime

from tenacity import retry_if_result

from rankbeam.transforms.clients.bigquery import errors
from rankbeam.transforms.clients.bigquery.errors import BigQueryError, Trouble
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.bigquery.results import place_of
from rankbeam.transforms.clients.bigquery.session import PATIENCE, Patience, Session
from rankbeam.transforms.records import tables
from rankbeam.transforms.records.errors import InputError

_REPEATED = (Trouble.CONCURRENT, Trouble.PASSING)


def delete_runs(dataset: DatasetName, runs: Iterable[tuple[str, datetime]], patience: Patience = PATIENCE) -> None:
    """Delete all rows of runs, each given by its id and its start.

    Raises:
        InputError: BigQuery refused; the runs before the one that the message names are deleted.
    """
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

    def attempt() -> BigQueryError | None:
        job = session.query(f"rankbeam_delete_{uuid.uuid4().hex}", script, _parameters(run_id, started_at))
        job = session.wait(job)
        return errors.of_job(job.error_result) if job.error_result else None

    again = retry_if_result(lambda error: error is not None and error.trouble in _REPEATED)
    error = session.patience.repeated(attempt, again, session.patience.conflicts + 1)
    if error is not None:
        raise error


def _parameters(run_id: str, started_at: datetime) -> object:
    from google.cloud import bigquery

    values = [
        bigquery.ScalarQueryParameter("run_id", "STRING", run_id),
        bigquery.ScalarQueryParameter("started_at", "TIMESTAMP", started_at),
    ]
    return bigquery.QueryJobConfig(query_parameters=values, use_legacy_sql=False)
