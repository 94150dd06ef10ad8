"""Batch jobs as model services offer them: files of requests, states, files of answers."""

import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any, NamedTuple, Protocol

from rankbeam.transforms.clients.ledger.waiting import PendingCall
from rankbeam.transforms.clients.models.model_connection import ModelConnection, ModelRequest
from rankbeam.transforms.clients.models.remote import Batch, RemoteModel
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.reply import Reply

KeyedLine = tuple[str, bytes]  # the key of a call, and its request as a line of a file
MOST_CALLS = 20_000  # the most calls of a job

_MOST_BYTES = 80 << 20  # of a part; a line is about as long as its payload


@dataclass(frozen=True)
class ServiceJob:
    """A batch job as its service describes it; its name is "" if other software made it."""

    id: str
    name: str
    state: str
    has_ended: bool
    outputs: tuple[str, ...] = ()  # files with all its answers; none while it runs, or if all requests failed
    message: str = ""  # the reason for a failure
    answers: int = 0  # number of rows that its outputs have at least; 0 if the service does not say
    is_over_limit: bool = False  # True if the service refused it because too many requests wait for its jobs


class BatchRow(NamedTuple):
    """One row of a job's output."""

    key: str | None  # None if the row has no readable key
    body: Mapping[str, Any] | None  # None for a request that failed
    problem: str = ""  # the service's message about a request that failed


class BatchService(Protocol):
    """The batch jobs of one service. Every method may raise a CallError."""

    @property
    def connection(self) -> ModelConnection: ...

    def line(self, key: str, request: ModelRequest, prompt: Prompt) -> bytes: ...

    def reply(self, body: Mapping[str, Any], request: ModelRequest, prompt: Prompt) -> Reply: ...

    async def create(self, name: str, lines: IO[bytes], step: str) -> str:
        """Create a job; returns its id."""

    async def find(self, name: str) -> Sequence[ServiceJob]:
        """All jobs with a name, the oldest first."""

    async def job(self, job: str) -> ServiceJob: ...

    async def cancel(self, job: str) -> None:
        """Ask the service to end a job; existing answers are kept."""

    def rows(self, job: ServiceJob, lines: Callable[[], Iterator[KeyedLine]]) -> AsyncIterator[BatchRow]:
        """The rows of a job's output, in any order; `lines` are the requests, for services whose rows have no keys."""


async def lines_of(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a file that arrives in pieces; the last line need not have a line break."""
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in filter(None, lines):
            yield line
    if rest:
        yield rest


def object_in(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line; None for anything else.

    >>> object_in(b'{"a": 1}'), object_in(b'{"a": ')
    ({'a': 1}, None)
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def spool_lines(lines: Iterator[bytes]) -> IO[bytes]:
    """Write lines to a temporary file, to be read from its beginning."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    for line in lines:
        file.write(line + b"\n")
    file.seek(0)
    return file


def parts_of(calls: Iterable[PendingCall], most_calls: int) -> Iterator[list[PendingCall]]:
    """Split calls of one service and step into parts that fit into one job."""
    part: list[PendingCall] = []
    size = 0
    for call in calls:
        length = len(call.payload.encode("utf-8", "replace"))
        if part and (len(part) >= most_calls or size + length > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(call)
        size += length
    if part:
        yield part


@dataclass(frozen=True)
class BatchedService:
    """A service that leaves calls to batch jobs."""

    name: str
    kind: str
    parameters: RemoteModel
    pool: str
    account: str
    quota: Quota

    @property
    def settings(self) -> Batch:
        return self.parameters.batch or Batch()

    @property
    def identity(self) -> dict[str, Any]:
        return self.parameters.identity(self.kind)

    async def connect(self) -> BatchService:
        if self.parameters.jobs_module is None:
            raise InputError(f"{self.name}: services of type {self.kind} have no batch jobs; take batch: out")
        service: BatchService = await import_module(self.parameters.jobs_module).connect(self.parameters)
        return service

    def most_cost(self, call: PendingCall) -> float:
        return self.quota.cost(1, self.parameters.most_tokens(call.payload).in_batch()) or 0.0
