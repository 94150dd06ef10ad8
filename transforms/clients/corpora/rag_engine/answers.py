"""Answers of RAG Engine's data API, in the form that the ledger keeps."""

from dataclasses import dataclass

from pydantic import TypeAdapter

from rankbeam.transforms.clients.corpora.lists import AnswerForms, Page
from rankbeam.transforms.records.errors import CallError

_STATUS = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip


@dataclass(frozen=True)
class Listed:
    """A corpus as the service lists it."""

    name: str
    display_name: str
    description: str
    created: str  # when it was made, in ISO 8601
    state: str = "ACTIVE"
    error: str = ""


@dataclass(frozen=True)
class ListedFile:
    """A file of a corpus; `error` says why it has none of its chunks."""

    uri: str
    name: str
    state: str = "ACTIVE"
    error: str = ""


@dataclass(frozen=True)
class Started:
    """The result of a request that starts an operation."""

    operation: str
    unsure: str = ""


@dataclass(frozen=True)
class Operation:
    """A long-running operation."""

    name: str
    done: bool
    progress: int = 0
    code: int = 0  # number of the gRPC status that it ended with; 0 where it did not fail
    message: str = ""
    resource: str = ""
    imported: int = 0
    failed: int = 0
    skipped: int = 0
    is_import: bool = False

    @property
    def error(self) -> CallError | None:
        """The error that it ended with; None where it succeeded or has not ended."""
        if not self.code:
            return None
        from rankbeam.transforms.clients.google.errors import kind_of

        status = _STATUS[self.code] if self.code < len(_STATUS) else "UNKNOWN"
        return CallError(kind_of(status), f"{status}: {self.message}")


ANSWERS = AnswerForms(
    "RAG Engine's data API",
    {
        "list": TypeAdapter(Page[Listed]),
        "files": TypeAdapter(Page[ListedFile]),
        "locations": TypeAdapter(Page[str]),  # projects/P/locations/L
        "create": TypeAdapter(Started),
        "update": TypeAdapter(Started),
        "import": TypeAdapter(Started),
        "delete": TypeAdapter(Started),
        "poll": TypeAdapter(Operation),
        "operations": TypeAdapter(Page[Operation]),
    },
)
"""The answer to each request."""
