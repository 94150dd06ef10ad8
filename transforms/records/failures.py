"""Failed calls: typed, kept, never dropped."""

from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """Why a call has no result."""

    INVALID = "invalid"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    QUOTA = "quota"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    MALFORMED = "malformed"

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later."""
        return self in _TRANSIENT


_TRANSIENT = {FailureKind.QUOTA, FailureKind.TIMEOUT, FailureKind.UNAVAILABLE, FailureKind.MALFORMED}


@dataclass(frozen=True)
class Failure:
    """One call that failed for good.

    Attributes:
        stage: the stage that made the call, such as "retrieve".
        kind: why.
        query_id: the query that was asked.
        attempts: how often it was tried.
        message: what the service said.
        only_thresholds: it has an answer, which those configurations cannot use that have a distance threshold.
    """

    stage: str
    kind: FailureKind
    query_id: str
    attempts: int
    message: str
    only_thresholds: bool = False
