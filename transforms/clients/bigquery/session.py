"""One dataset of BigQuery: its tables and jobs. Requests are retried after transient errors; errors are rankbeam's.

We choose the ids of jobs, so that a request that is repeated because its reply was lost finds the job instead of
starting a second one.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    retry_if_result,
    stop_after_attempt,
    wait_exponential,
    wait_random_exponential,
)
from tenacity.retry import retry_base

from rankbeam.transforms.clients.bigquery import errors
from rankbeam.transforms.clients.bigquery.errors import BigQueryError, ErrorKind
from rankbeam.transforms.clients.bigquery.names import DatasetName, TableName

T = TypeVar("T")

_REQUEST_S = 60.0
_UPLOAD_S = 600.0
_PIECE_RETRIES, _PIECE_BYTES = 6, 100 << 20
_HOST = "BIGQUERY_EMULATOR_HOST"  # the client's own variable


@dataclass(frozen=True)
class Patience:
    """Time for retries."""

    attempts: int = 7
    conflicts: int = 12
    first_s: float = 1.0
    longest_s: float = 32.0
    poll_s: float = 0.2  # the wait between looks at a job; it grows by half, up to ten seconds
    sleep: Callable[[float], None] = time.sleep  # waits some seconds

    def call(self, work: Callable[[], T]) -> T:
        return self.repeated(lambda: _translate_errors(work), retry_if_exception(_is_passing))

    def repeated(self, work: Callable[[], T], again: retry_base, attempts: int | None = None) -> T:
        """Do the work, and repeat it after random waits; returns or raises the last outcome."""
        most = stop_after_attempt(attempts or self.attempts)
        waits = wait_random_exponential(self.first_s, self.longest_s)
        result: T = Retrying(retry=again, stop=most, wait=waits, sleep=self.sleep, retry_error_callback=_outcome)(work)
        return result

    def poll(self, work: Callable[[], T], is_pending: Callable[[T], bool]) -> T:
        waits = wait_exponential(self.poll_s, exp_base=1.5, max=max(10.0, self.poll_s))
        result: T = Retrying(retry=retry_if_result(is_pending), wait=waits, sleep=self.sleep)(work)
        return result


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, BigQueryError) and error.kind is ErrorKind.PASSING


def _outcome(state: RetryCallState) -> Any:
    return state.outcome.result() if state.outcome else None


PATIENCE = Patience()
IMPATIENT = Patience(attempts=3)  # for checks before the work begins, while the user waits


def again_after(*kinds: ErrorKind) -> retry_base:
    return retry_if_result(lambda error: error is not None and error.kind in kinds)


def parameters(**values: str | datetime) -> Any:
    from google.cloud import bigquery

    kinds = {str: "STRING", datetime: "TIMESTAMP"}
    typed = [bigquery.ScalarQueryParameter(name, kinds[type(value)], value) for name, value in values.items()]
    return bigquery.QueryJobConfig(query_parameters=typed, use_legacy_sql=False)


class Session:
    """A dataset and its project's jobs."""

    def __init__(self, dataset: DatasetName, patience: Patience = PATIENCE) -> None:
        self.dataset, self.patience = dataset, patience

    @cached_property
    def client(self) -> Any:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import bigquery

        # A server without TLS gets no credentials, as they could be intercepted.
        plain = os.environ.get(_HOST, "").startswith("http://")
        project, credentials = self.dataset.project, AnonymousCredentials() if plain else None
        return _translate_errors(lambda: bigquery.Client(project=project, credentials=credentials))

    @cached_property
    def location(self) -> str:
        """The location of the dataset, in which its jobs have to run."""
        return str(self._ask("get_dataset", str(self.dataset)).location)

    def expire(self, partition_ms: int | None) -> None:
        """Set the age in ms at which BigQuery deletes partitions of tables that are created later; None: never."""
        dataset = self._ask("get_dataset", str(self.dataset))
        dataset.default_partition_expiration_ms = partition_ms
        self._ask("update_dataset", dataset, ["default_partition_expiration_ms"])

    def table(self, name: str) -> Any | None:
        return self._unless_missing(lambda: self._ask("get_table", str(self.dataset.table(name))))

    def create(self, table: Any) -> Any:
        """Create a table, or find the one that another process has created meanwhile."""
        try:
            return self._ask("create_table", table)
        except BigQueryError as error:
            if error.kind is not ErrorKind.EXISTS:
                raise
            return self._ask("get_table", table.reference)

    def update(self, table: Any, fields: list[str]) -> None:
        self._ask("update_table", table, fields)

    def drop(self, name: str) -> None:
        self._ask("delete_table", str(self.dataset.table(name)), not_found_ok=True)

    def job(self, job_id: str) -> Any | None:
        return self._unless_missing(lambda: self._get_job(job_id))

    def query(self, job_id: str, statements: str, config: Any) -> Any:
        """Start a job with statements, or find the one with that id."""
        where = {"location": self.location, "job_retry": None}
        return self._begin_job(job_id, lambda: self._ask("query", statements, config, job_id, **where))

    def outcome(self, job_id: str, statements: str, config: Any = None) -> BigQueryError | None:
        """Wait for a job with statements, and return the error that it ended with, if any."""
        return errors.of_job(self.wait(self.query(job_id, statements, config)))

    def committed(self, attempt: Callable[[], BigQueryError | None]) -> BigQueryError | None:
        """Repeat a transaction while others write to the same tables; returns the error of the last attempt."""
        again = again_after(ErrorKind.CONCURRENT, ErrorKind.PASSING)
        return self.patience.repeated(attempt, again, self.patience.conflicts + 1)

    def rows(self, query: str, config: Any) -> list[Any]:
        """The result of a query that changes nothing."""
        where = {"location": self.location, "retry": None, "job_retry": None, "api_timeout": _REQUEST_S}
        return self.patience.call(lambda: list(self.client.query_and_wait(query, job_config=config, **where)))

    def load_uris(self, job_id: str, uris: list[str], table: TableName, config: Any) -> Any:
        where = {"job_id": job_id, "job_config": config, "location": self.location}
        return self._begin_job(job_id, lambda: self._ask("load_table_from_uri", uris, str(table), **where))

    def load_file(self, job_id: str, path: str, table: TableName, config: Any) -> Any:
        # A large file is uploaded in pieces, of which only a failed one is repeated; a small one starts over.
        retries = _PIECE_RETRIES if Path(path).stat().st_size > _PIECE_BYTES else 0
        where = {"job_id": job_id, "job_config": config, "location": self.location}

        def upload() -> Any:
            with Path(path).open("rb") as content:
                return self.client.load_table_from_file(
                    content, str(table), num_retries=retries, timeout=_UPLOAD_S, **where
                )

        return self._begin_job(job_id, lambda: self.patience.call(upload))

    def wait(self, job: Any) -> Any:
        if job.state == "DONE":
            return job
        return self.patience.poll(lambda: self._get_job(job.job_id), lambda job: job.state != "DONE")

    def _get_job(self, job_id: str) -> Any:
        return self._ask("get_job", job_id, location=self.location)

    def _ask(self, method: str, *arguments: Any, **more: Any) -> Any:
        """Call a method of Google's client, with our retries instead of its own."""
        once = {"retry": None, "timeout": _REQUEST_S, **more}
        return self.patience.call(lambda: getattr(self.client, method)(*arguments, **once))

    def _begin_job(self, job_id: str, begin: Callable[[], Any]) -> Any:
        try:
            return begin()
        except BigQueryError as error:
            if error.kind is not ErrorKind.EXISTS:
                raise
        # A new job may take a moment to become visible.
        job = self.patience.repeated(lambda: self.job(job_id), retry_if_result(lambda job: job is None))
        if job is None:
            raise BigQueryError(ErrorKind.PASSING, f"job {job_id} exists, but cannot be found")
        return job

    def _unless_missing(self, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except BigQueryError as error:
            if error.kind is not ErrorKind.MISSING:
                raise
            return None


def _translate_errors(work: Callable[[], T]) -> T:
    try:
        return work()
    except BigQueryError:
        raise
    except Exception as error:  # `errors.bigquery_error` raises again what is not Google's
        raise errors.bigquery_error(error) from error
