"""Steps that several works on corpora share: requests, pages of lists, and waiting for long-running operations."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from rankbeam.transforms.clients.corpora.rag_engine.answers import Listed, ListedFile, Operation
from rankbeam.transforms.clients.corpora.rag_engine.data_api import SERVICE
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.pause import pause
from rankbeam.transforms.records.calls.steps import Steps, accepted
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

STUCK_S = 6 * 3600.0
"""An operation without progress for so long is no longer waited for."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_BETWEEN_S = 120.0
_MOST_FAILED_POLLS = 10
_MOST_BUSY, _BUSY_S = 60, 60.0
_NO_LIST = {FailureKind.INVALID, FailureKind.NOT_FOUND, FailureKind.PERMISSION}


def request(name: str, key: str | None = None, **fields: Any) -> Call:
    """A request of the data API; with a key its answer goes to the ledger."""
    return Call(SERVICE, key, json.dumps({"request": name, **fields}, ensure_ascii=False))


def _pages(name: str, **fields: Any) -> Steps[list[Any]]:
    """All pages of a list."""
    pages: list[Any] = []
    while not pages or pages[-1].next:
        pages += accepted((yield [request(name, **fields, page_token=pages[-1].next if pages else "")]))
    return pages


def listed_corpora() -> Steps[tuple[Listed, ...]]:
    """All corpora of the project and region, rankbeam's and others."""
    return tuple(corpus for page in (yield from _pages("list")) for corpus in page.corpora)


def listed_locations() -> Steps[tuple[str, ...]]:
    """All locations of the project, as projects/P/locations/L."""
    return tuple(location for page in (yield from _pages("locations")) for location in page.locations)


def listed_files(corpus: str) -> Steps[tuple[ListedFile, ...]]:
    """All files of a corpus."""
    return tuple(file for page in (yield from _pages("files", corpus=corpus)) for file in page.files)


def running_imports(corpus: str) -> Steps[tuple[str, ...]]:
    """Names of the imports into a corpus that have not ended; none where the service does not list operations."""
    names: list[str] = []
    token = ""
    while True:
        (page,) = yield [request("operations", corpus=corpus, page_token=token)]
        if isinstance(page, CallError):
            if page.kind in _NO_LIST:
                return tuple(names)
            raise page
        names += [operation.name for operation in page.operations if operation.is_import and not operation.done]
        if not (token := page.next):
            return tuple(names)


def patiently(call: Call) -> Steps[Any]:
    """The answer to a request that the service refuses while other operations run on the corpus; it waits for these."""
    for _ in range(_MOST_BUSY):
        (answer,) = yield [call]
        if not isinstance(answer, CallError):
            return answer
        if not is_busy(answer):
            raise answer
        yield [pause(_BUSY_S)]
    raise answer


def is_busy(error: CallError) -> bool:
    """Return whether a request is refused only because another operation is running.

    >>> is_busy(CallError(FailureKind.INVALID, "FAILED_PRECONDITION: There are other operations running"))
    True
    """
    return error.message.startswith("FAILED_PRECONDITION") and "operation" in error.message


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
        f"{operation.name} stands at {operation.progress}% for {seconds / 3600:.1f} hours; run again later to wait "
        f"for it further (it imports only what is missing then), allow more time with quotas: {{rag_engine_import: "
        f"{{give_up_after_s: …}}}}, or begin anew after `rankbeam corpora delete PLACE {corpus}`"
    )


def pauses(longest: float = _LONGEST_PAUSE_S) -> Iterator[float]:
    """Pauses between polls, each longer than the one before, up to a limit."""
    seconds = _FIRST_PAUSE_S
    while True:
        yield seconds
        seconds = min(longest, seconds * 1.5)
