"""Steps that several works on corpora share: requests, pages of lists, and waiting for long-running operations."""

import json
from collections.abc import Iterator
from typing import Any

from rankbeam.transforms.clients.corpora.rag_engine.answers import Listed, ListedFile, Operation
from rankbeam.transforms.clients.corpora.rag_engine.data_api import SERVICE
from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.pause import pause
from rankbeam.transforms.records.calls.steps import Steps, accepted
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_MOST_FAILED_POLLS = 10
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
    return tuple(each for page in (yield from _pages("list")) for each in page.corpora)


def listed_locations() -> Steps[tuple[str, ...]]:
    """All locations of the project, as projects/P/locations/L."""
    return tuple(each for page in (yield from _pages("locations")) for each in page.locations)


def listed_files(corpus: str) -> Steps[tuple[ListedFile, ...]]:
    """All files of a corpus."""
    return tuple(each for page in (yield from _pages("files", corpus=corpus)) for each in page.files)


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
        names += [each.name for each in page.operations if each.is_import and not each.done]
        if not (token := page.next):
            return tuple(names)


def awaited(operation: str) -> Steps[Operation]:
    """A long-running operation, once it has ended, well or not.

    A poll that fails says nothing of the operation: it goes on, and is polled again.

    Raises:
        CallError: there is no such operation, or it could not be polled for a long time.
    """
    failed = 0
    for seconds in _pauses():
        (outcome,) = yield [request("poll", operation=operation)]
        if isinstance(outcome, Operation):
            failed = 0
            if outcome.done:
                return outcome
        elif not outcome.kind.is_transient or (failed := failed + 1) >= _MOST_FAILED_POLLS:
            raise outcome
        yield [pause(seconds)]
    raise AssertionError("pauses do not end")


def _pauses() -> Iterator[float]:
    """Pauses between polls: longer each time, up to a minute."""
    seconds = _FIRST_PAUSE_S
    while True:
        yield seconds
        seconds = min(_LONGEST_PAUSE_S, seconds * 1.5)
