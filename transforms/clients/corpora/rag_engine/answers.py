"""Answers of RAG Engine's data API, in the form that the ledger keeps."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from rankbeam.transforms.clients.calls.answers import parsed, written
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

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
class CorporaPage:
    """A page of corpora; `next` is the token of the next one."""

    corpora: tuple[Listed, ...]
    next: str = ""


@dataclass(frozen=True)
class ListedFile:
    """A file of a corpus; `error` says why it has none of its chunks."""

    uri: str
    name: str
    state: str = "ACTIVE"
    error: str = ""


@dataclass(frozen=True)
class FilesPage:
    """A page of files; `next` is the token of the next one."""

    files: tuple[ListedFile, ...]
    next: str = ""


@dataclass(frozen=True)
class Locations:
    """A page of the locations of a project, projects/P/locations/L; `next` is the token of the next one."""

    locations: tuple[str, ...]
    next: str = ""


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


@dataclass(frozen=True)
class Operations:
    """A page of operations; `next` is the token of the next one."""

    operations: tuple[Operation, ...]
    next: str = ""


Answer = CorporaPage | FilesPage | Locations | Started | Operation | Operations

FORMS: Mapping[str, TypeAdapter[Any]] = {
    "list": TypeAdapter(CorporaPage),
    "files": TypeAdapter(FilesPage),
    "locations": TypeAdapter(Locations),
    "create": TypeAdapter(Started),
    "update": TypeAdapter(Started),
    "import": TypeAdapter(Started),
    "delete": TypeAdapter(Started),
    "poll": TypeAdapter(Operation),
    "operations": TypeAdapter(Operations),
}
"""The form of the answer to each request."""


def stored(request: str, values: Mapping[str, Any]) -> str:
    """An answer as the ledger keeps it."""
    return json.dumps({"request": request, "answer": json.loads(written(FORMS[request], dict(values)))})


def read(answer: str) -> Any:
    """The value of a stored answer.

    >>> read(stored("import", {"operation": "o/1"}))
    Started(operation='o/1', unsure='')
    """
    try:
        values = json.loads(answer)
        form, content = FORMS[values["request"]], json.dumps(values["answer"])
    except (ValueError, KeyError, TypeError) as error:
        raise CallError(FailureKind.MALFORMED, "the answer is not of RAG Engine's data API") from error
    return parsed(form, content)
