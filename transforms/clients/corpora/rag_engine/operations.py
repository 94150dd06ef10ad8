"""Steps that several works on corpora share: requests, pages of lists, and waiting for long-running operations."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from rankbeam.transforms.clients.corpora.lists import all_pages
from rankbeam.transforms.clients.corpora.rag_engine.data_api import SERVICE, Listed, ListedFile, Operation
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.steps import Steps, accepted, pause
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

STUCK_S = 6 * 3600.0
"""An operation without progress for so long is no longer waited for."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_BETWEEN_S = 120.0
_MOST_FAILED_POLLS = 10
_MOST_REFUSED, _REFUSED_S = 60, 60.0
_NO_LIST = {FailureKind.INVALID, FailureKind.NOT_FOUND, FailureKind.PERMISSION}


def request(name: str, key: str | None = None, **fields: Any) -> Call:
    """A request of the data API; with a key its answer goes to the ledger."""
    return Call(SERVICE, key, json.dumps({"request": name, **fields}, ensure_ascii=False))


def listed_corpora() -> Steps[tuple[Listed, ...]]:
    """All corpora of the project and region, rankbeam's and others."""
    return (yield from all_pages(lambda token: request("list", page_token=token)))


def listed_locations() -> Steps[tuple[str, ...]]:
    """All locations of the project, as projects/P/locations/L."""
    return (yield from all_pages(lambda token: request("locations", page_token=token)))


def listed_files(corpus: str) -> Steps[tuple[ListedFile, ...]]:
    return (yield from all_pages(lambda token: request("files", corpus=corpus, page_token=token)))


def running_imports(corpus: str) -> Steps[tuple[str, ...]]:
    """Names of the imports into a corpus that have not ended; none if the service does not list operations."""
    try:
        operations = yield from all_pages(lambda token: request("operations", corpus=corpus, page_token=token))
    except CallError as error:
        if error.kind in _NO_LIST:
            return ()
        raise
    return tuple(operation.name for operation in operations if operation.is_import and not operation.done)


def patiently(call: Call, is_refused: Callable[[BaseException], bool] | None = None) -> Steps[Any]:
    """The answer to a request that the service refuses for a while; by default while operations run on the corpus."""
    waits: list[float] = []
    again = retry_if_exception(is_refused or is_busy)
    most = stop_after_attempt(_MOST_REFUSED)
    for attempt in Retrying(retry=again, stop=most, wait=wait_fixed(_REFUSED_S), sleep=waits.append, reraise=True):
        while waits:
            yield [pause(waits.pop())]
        with attempt:
            (answer,) = accepted((yield [call]))
    return answer


def is_busy(error: BaseException) -> bool:
    """Return whether a request is refused only because another operation is running.

    >>> is_busy(CallError(FailureKind.INVALID, "FAILED_PRECONDITION: There are other operations running"))
    True
    """
    is_early = isinstance(error, CallError) and error.message.startswith("FAILED_PRECONDITION")
    return is_early and "operation" in str(error)


def awaited(
    operation: str, stuck_s: float = STUCK_S, between: Callable[[], Steps[None]] | None = None
) -> Steps[Operation]:
    """A long-running operation, once it has ended, well or not.

    A poll that fails says nothing of the operation: it goes on, and is polled again.
    """
    failed, progress, idle, waited = 0, -1, 0.0, 0.0
    for seconds in pauses():
        (outcome,) = yield [request("poll", operation=operation)]
        if isinstance(outcome, Operation):
            failed = 0
            if outcome.done:
                return outcome
            idle, progress = (idle if outcome.progress == progress else 0.0), outcome.progress
            if idle >= stuck_s:
                raise CallError(FailureKind.TIMEOUT, _stuck(outcome, idle))
        elif not outcome.kind.is_transient or (failed := failed + 1) >= _MOST_FAILED_POLLS:
            raise outcome
        yield [pause(seconds)]
        idle, waited = idle + seconds, waited + seconds
        if between is not None and waited >= _BETWEEN_S:
            waited = 0.0
            yield from between()
    raise AssertionError("pauses do not end")


def _stuck(operation: Operation, seconds: float) -> str:
    corpus = operation.name.partition("/operations/")[0]
    return (
        f"{operation.name} has been at {operation.progress}% for {seconds / 3600:.1f} hours; run again later to wait "
        f"for it further (it imports only what is missing then), allow more time with quotas: {{rag_engine_import: "
        f"{{give_up_after_s: …}}}}, or begin anew after `rankbeam corpora delete PLACE {corpus}`"
    )


def pauses(longest: float = _LONGEST_PAUSE_S) -> Iterator[float]:
    """Pauses between polls, each longer than the one before, up to a limit."""
    seconds = _FIRST_PAUSE_S
    while True:
        yield seconds
        seconds = min(longest, seconds * 1.5)
