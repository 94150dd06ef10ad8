"""Errors of BigQuery, translated into rankbeam's.

RankbeamError
 ├── BigQueryError  one request or job failed; `kind` decides what can be done about it
 └── LoadFailed     a run was not loaded: exit status 1
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.clients.storage.remedies import SIGN_IN, enable, reason, wait_for_quota
from rankbeam.transforms.records.errors import RankbeamError, shortened

_CONCURRENT = re.compile(r"due to concurrent update")
_SERVICE = "bigquery.googleapis.com"
_LONGEST_MESSAGE = 600
_PASSING_REASONS = {
    "backendError", "internalError", "badGateway", "rateLimitExceeded", "tableUnavailable",
    "jobBackendError", "jobInternalError", "jobRateLimitExceeded",
}  # fmt: skip


class ErrorKind(Enum):
    """Kinds of errors, by the way to handle them."""

    PERMISSION = "permission denied"
    MISSING = "not found"
    EXISTS = "exists already"
    CHANGED = "was changed meanwhile"
    QUOTA = "a quota is used up"
    DISABLED = "the API is not enabled"
    CONCURRENT = "another job wrote at the same time"
    PASSING = "BigQuery does not answer"
    CREDENTIALS = "no credentials for Google Cloud"
    CONFLICT = "conflict"
    REFUSED = "refused"


_BY_REASON = {
    **dict.fromkeys(_PASSING_REASONS, ErrorKind.PASSING),
    "accessDenied": ErrorKind.PERMISSION,
    "quotaExceeded": ErrorKind.QUOTA,
    "accessNotConfigured": ErrorKind.DISABLED,
    "SERVICE_DISABLED": ErrorKind.DISABLED,
    "notFound": ErrorKind.MISSING,
    "duplicate": ErrorKind.EXISTS,
    "conditionNotMet": ErrorKind.CHANGED,
}
_BY_STATUS = {
    **dict.fromkeys((408, 429, 500, 502, 503, 504), ErrorKind.PASSING),
    401: ErrorKind.CREDENTIALS,
    403: ErrorKind.PERMISSION,
    404: ErrorKind.MISSING,
    409: ErrorKind.EXISTS,
    412: ErrorKind.CHANGED,
}


class BigQueryError(RankbeamError):
    """A request to BigQuery, or a job, failed."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        line = shortened(" ".join(message.split()), _LONGEST_MESSAGE)
        super().__init__(f"{kind.value}: {line}")
        self.kind, self.message = kind, line

    def __reduce__(self) -> tuple[object, ...]:
        return BigQueryError, (self.kind, self.message)

    def advice(self, dataset: DatasetName) -> str:
        advice = advice_of(self, dataset.project)
        if self.kind is ErrorKind.PERMISSION:
            advice = (
                "; grant the account the roles BigQuery Data Editor (roles/bigquery.dataEditor) on the dataset and "
                f"BigQuery Job User (roles/bigquery.jobUser) on the project {dataset.project}"
            )
        if self.kind is ErrorKind.MISSING and "dataset" in self.message.lower():
            advice = f"; make the dataset: bq --location=LOCATION mk --dataset {dataset.project}:{dataset.dataset}"
        return f"{self}{advice}"


class LoadFailed(RankbeamError):
    """A run was not loaded. BigQuery's tables are unchanged."""

    def __init__(self, message: str, *, can_repeat: bool = True) -> None:
        super().__init__(message)
        self.can_repeat = can_repeat


def bigquery_error(error: Exception) -> BigQueryError:
    from google.api_core.exceptions import GoogleAPICallError
    from google.auth.exceptions import GoogleAuthError, TransportError
    from requests.exceptions import RequestException, SSLError

    if isinstance(error, GoogleAPICallError):
        details = next((item for item in error.errors if isinstance(item, Mapping)), {})
        message = str(details.get("message") or error.message)  # without method and address
        by_status = _BY_STATUS.get(int(error.code or 0), ErrorKind.REFUSED)
        kind = _BY_REASON.get(str(details.get("reason") or error.reason), by_status)
        return BigQueryError(_unless_concurrent(kind, message), message)
    if isinstance(error, GoogleAuthError):
        kind = ErrorKind.PASSING if isinstance(error, TransportError) else ErrorKind.CREDENTIALS
        return BigQueryError(kind, reason(error))
    if isinstance(error, SSLError):
        return BigQueryError(ErrorKind.REFUSED, str(error))
    if isinstance(error, RequestException | ConnectionError | TimeoutError):
        return BigQueryError(ErrorKind.PASSING, str(error))
    raise error


def of_job(job: Any) -> BigQueryError | None:
    """The error that a job ended with."""
    result = job.error_result
    if not result:
        return None
    message = str(result.get("message", ""))
    kind = _BY_REASON.get(str(result.get("reason")), ErrorKind.REFUSED)
    return BigQueryError(_unless_concurrent(kind, message), message)


def _unless_concurrent(kind: ErrorKind, message: str) -> ErrorKind:
    """BigQuery gives no separate reason for transactions that it aborts; their message shows it."""
    return ErrorKind.CONCURRENT if _CONCURRENT.search(message) else kind


def advice_of(error: BigQueryError, project: str | None) -> str:
    """Return advice about an error that does not depend on what was read or written."""
    if error.kind is ErrorKind.CREDENTIALS:
        return f"; {SIGN_IN}"
    if error.kind is ErrorKind.DISABLED:
        return f"; {enable(f'SERVICE_DISABLED {error.message}', _SERVICE, project)}"
    if error.kind is ErrorKind.QUOTA:
        return f"; {wait_for_quota(_SERVICE, project)}"
    return "; is there a network?" if error.kind is ErrorKind.PASSING else ""
