"""Works on corpora: find, create, delete. Each is a generator of requests and pauses."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

from rankbeam.transforms.clients.corpora.lists import all_pages
from rankbeam.transforms.clients.corpora.rag_engine.data_api import SERVICE, ListedCorpus, ListedFile, Operation
from rankbeam.transforms.clients.corpora.rag_engine.description import CorpusDescription, parse_description
from rankbeam.transforms.clients.corpora.rag_engine.parameters import RagEngineCorpus
from rankbeam.transforms.records.calls.steps import Call, Steps, pause, results_or_raise
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError, FailureKind

STAGE = "corpora"
_MOST_LOST = 3
_LOOK_AGAIN_S = (2.0, 4.0, 8.0, 16.0, 32.0)
STUCK_S = 6 * 3600.0  # an operation without progress for this long is no longer waited for
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_BETWEEN_S = 120.0
_MOST_FAILED_POLLS = 10
_MOST_REFUSED, _REFUSED_S = 60, 60.0
_NO_LIST = {FailureKind.INVALID, FailureKind.NOT_FOUND, FailureKind.PERMISSION}


@dataclass(frozen=True)
class ExistingCorpus:
    """An existing corpus that belongs to rankbeam."""

    resource: str
    about: CorpusDescription
    created: str = ""  # when the service created it, in ISO 8601
    state: str = "ACTIVE"

    def suffices(self, most_failures: int) -> bool:
        """Return whether it can be used as it is: it is complete, and lacks at most this many documents."""
        return self.about.complete and self.about.failed <= most_failures


def ours(corpora: Iterable[ListedCorpus]) -> tuple[ExistingCorpus, ...]:
    """The corpora that rankbeam created, the preferred one of each identity first: complete, then oldest."""
    described = ((corpus, parse_description(corpus)) for corpus in corpora)
    existing = [
        ExistingCorpus(corpus.name, own, corpus.created, corpus.state) for corpus, own in described if own is not None
    ]
    return tuple(sorted(existing, key=lambda item: (not item.about.complete, item.created, item.resource)))


def preferred_corpora(existing: Sequence[ExistingCorpus]) -> dict[str, ExistingCorpus]:
    """The preferred corpus of each identity; `existing` has the preferred ones first."""
    return {corpus.about.identity: corpus for corpus in reversed(existing)}


@dataclass(frozen=True)
class NeededCorpus:
    """A corpus that a run needs; the operations on it are those that earlier runs began."""

    about: CorpusDescription
    parameters: RagEngineCorpus
    creations: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    most_failures: int = 0


def operation_key(kind: str, location: str, identity: str, number: int) -> str:
    return content_key(
        {"stage": "corpora", "operation": kind, "location": location, "identity": identity, "number": number}
    )


def find_corpora(needed_corpora: Sequence[NeededCorpus]) -> Steps[tuple[ExistingCorpus, ...]]:
    """Find rankbeam's existing corpora, once all imports into needed ones have ended.

    An earlier run may have been killed while it created a corpus or imported files. These operations go on, and are
    waited for, so that nothing is created twice and the limit on concurrent imports is not exceeded.
    """
    existing = ours((yield from listed_corpora()))
    by_identity = preferred_corpora(existing)
    waited = False
    for needed in needed_corpora:
        corpus = by_identity.get(needed.about.identity)
        if corpus is None:
            waited |= yield from _waited_for(needed.creations[-1:])
        elif not corpus.suffices(needed.most_failures):
            running = yield from running_imports(corpus.resource)
            known = [name for name in needed.imports[-1:] if name.startswith(f"{corpus.resource}/")]
            waited |= yield from _waited_for(dict.fromkeys([*running, *known]))
    return ours((yield from listed_corpora())) if waited else existing


def _waited_for(operations: Iterable[str]) -> Steps[bool]:
    """Wait for operations; returns whether the service still knew any of them."""
    waited = False
    for operation in filter(None, operations):
        try:
            yield from wait_for_end(operation)
        except CallError as error:
            if error.kind is not FailureKind.NOT_FOUND:  # the service forgets operations that ended long ago
                raise
        else:
            waited = True
    return waited


def create_corpus(location: str, needed: NeededCorpus) -> Steps[str]:
    """Create a corpus without files; returns the name of its resource."""
    own, parameters = needed.about, needed.parameters
    fields = {
        "display_name": own.display_name,
        "description": own.description(),
        "vector_db_config": parameters.vector_database(),
        **({} if parameters.kms_key is None else {"encryption_spec": {"kms_key_name": parameters.kms_key}}),
    }
    first = len(needed.creations)
    for number in range(first, first + _MOST_LOST):
        key = operation_key("create", location, own.identity, number)
        (started,) = results_or_raise((yield [request("create", key, corpus=fields)]))
        if started.operation:
            return (yield from wait_for_success(started.operation)).resource
        for seconds in _LOOK_AGAIN_S:
            yield [pause(seconds)]
            for existing in ours((yield from listed_corpora())):
                if existing.about.identity == own.identity:
                    return existing.resource
    raise CallError(FailureKind.UNAVAILABLE, f"the answers were lost: {started.unsure}")


def wait_for_success(name: str) -> Steps[Operation]:
    operation = yield from wait_for_end(name)
    if operation.error is not None:
        raise operation.error
    return operation


def delete_corpus(resource: str) -> Steps[str]:
    """Delete a corpus with its files, if it exists, and return its name; callers ensure that it is rankbeam's."""
    try:
        started = yield from patiently(request("delete", corpus=resource))
        yield from wait_for_success(started.operation)
    except CallError as error:
        if error.kind is not FailureKind.NOT_FOUND:
            raise
    return resource


def update_corpus(resource: str, own: CorpusDescription) -> Steps[str]:
    """Write a corpus' description; returns the corpus' name."""
    started = yield from patiently(update_request(resource, own))
    yield from wait_for_success(started.operation)
    return resource


def update_request(resource: str, own: CorpusDescription) -> Call:
    fields = {"name": resource, "display_name": own.display_name, "description": own.description()}
    return request("update", corpus=fields)


def request(name: str, key: str | None = None, **fields: Any) -> Call:
    """A request to the data API; if it has a key, its answer goes to the ledger."""
    return Call(SERVICE, key, json.dumps({"request": name, **fields}, ensure_ascii=False))


def listed_corpora() -> Steps[tuple[ListedCorpus, ...]]:
    return (yield from all_pages(lambda token: request("list", page_token=token)))


def listed_locations(_: None) -> Steps[tuple[str, ...]]:
    return (yield from all_pages(lambda token: request("locations", page_token=token)))


def listed_files(corpus: str) -> Steps[tuple[ListedFile, ...]]:
    return (yield from all_pages(lambda token: request("files", corpus=corpus, page_token=token)))


def running_imports(corpus: str) -> Steps[tuple[str, ...]]:
    """Names of the running imports into a corpus; empty if the service does not list operations."""
    try:
        operations = yield from all_pages(lambda token: request("operations", corpus=corpus, page_token=token))
    except CallError as error:
        if error.kind in _NO_LIST:
            return ()
        raise
    return tuple(operation.name for operation in operations if operation.is_import and not operation.done)


def patiently(call: Call, is_refused: Callable[[BaseException], bool] | None = None) -> Steps[Any]:
    """Repeat a request as long as `is_refused` holds for the error, by default while operations run on the corpus."""
    waits: list[float] = []
    retry = retry_if_exception(is_refused or is_busy)
    most = stop_after_attempt(_MOST_REFUSED)
    for attempt in Retrying(retry=retry, stop=most, wait=wait_fixed(_REFUSED_S), sleep=waits.append, reraise=True):
        while waits:
            yield [pause(waits.pop())]
        with attempt:
            (answer,) = results_or_raise((yield [call]))
    return answer


def is_busy(error: BaseException) -> bool:
    """Return whether a request was refused only because another operation is running."""
    is_early = isinstance(error, CallError) and error.message.startswith("FAILED_PRECONDITION")
    return is_early and "operation" in str(error)


def wait_for_end(
    operation: str, stuck_s: float = STUCK_S, between: Callable[[], Steps[None]] | None = None
) -> Steps[Operation]:
    """Poll a long-running operation until it has ended, successfully or not; failed polls are repeated."""
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
    """Pauses between polls, each longer than the last one, up to a limit."""
    seconds = _FIRST_PAUSE_S
    while True:
        yield seconds
        seconds = min(longest, seconds * 1.5)
