"""Faults, and BigQuery's messages for them."""

from dataclasses import dataclass
from typing import Any

STATUSES = {
    "accessDenied": 403,
    "quotaExceeded": 403,
    "rateLimitExceeded": 403,
    "notFound": 404,
    "duplicate": 409,
    "conditionNotMet": 412,
    "invalid": 400,
    "invalidQuery": 400,
    "internalError": 500,
    "backendError": 503,
}


class Refusal(Exception):
    """An error as BigQuery tells it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message, self.status = reason, message, STATUSES[reason]

    def proto(self) -> dict[str, Any]:
        """The error as a job has it."""
        return {"reason": self.reason, "message": self.message}

    def body(self) -> dict[str, Any]:
        """The error as an answer has it."""
        errors = [{"domain": "global", **self.proto()}]
        return {"error": {"code": self.status, "message": self.message, "errors": errors}}


@dataclass
class Fault:
    """Something that goes wrong.

    Attributes:
        on: the method, such as "jobs.insert"; or "load" or "script", for jobs of that kind.
        what: a reason of STATUSES; "drop" to close the connection before anything is done, "lost" to do it after. A job
            ends with the reason as its error; "slow" makes it last `seconds`, a script that long for every statement;
            "dies" ends a script after `after` statements.
        times: number of times.
        text: only requests and jobs in which this stands.
        seconds: delay of "slow".
        after: number of statements before "dies".
        message: said with it.
    """

    on: str
    what: str
    times: int = 1
    text: str = ""
    seconds: float = 0.0
    after: int = 0
    message: str = "as the script says"

    def refusal(self) -> Refusal:
        """The message."""
        return Refusal("backendError" if self.what == "dies" else self.what, self.message)


def take(faults: list[Fault], on: str, text: str) -> Fault | None:
    """The fault that happens now, if any."""
    for fault in faults:
        if fault.on == on and fault.times > 0 and fault.text in text:
            fault.times -= 1
            return fault
    return None
