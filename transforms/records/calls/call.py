"""Calls to remote services: what is asked, out of which budget, and what came back."""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rankbeam.transforms.records.calls.reach import Reach
from rankbeam.transforms.records.failures import Failure

Asker = tuple[int, str]
"""Who wants an answer: the bucket and the id of a query."""


@dataclass(frozen=True)
class Call:
    """One request to a remote service.

    Attributes:
        pool: the quota pool that pays for it.
        service: position of the service that is called, among the job's services.
        key: what is asked, as `content_key` says it: the ledger finds the answer by it.
        reach: how far into a ranking it goes.
        payload: what is asked, as JSON that the service understands.
        askers: who wants the answer.
    """

    pool: str
    service: int
    key: str
    reach: Reach
    payload: str
    askers: tuple[Asker, ...]

    def reaching(self, reach: Reach) -> "Call":
        """The same call, going as far as that."""
        payload = {**json.loads(self.payload), "top_k": reach.results, "distance": reach.distance}
        return replace(self, reach=reach, payload=json.dumps(payload, ensure_ascii=False))


@dataclass(frozen=True)
class Request:
    """Calls that one answer serves.

    Attributes:
        call: the one that is made.
        calls: all that it answers.
    """

    call: Call
    calls: tuple[Call, ...]

    @property
    def service(self) -> int:
        """Position of the service that is called."""
        return self.call.service


def merged(calls: Iterable[Call]) -> list[Request]:
    """Calls with one key as one request that goes as far as any of them, in the order in which they first come."""
    by_key: dict[str, list[Call]] = {}
    for call in calls:
        by_key.setdefault(call.key, []).append(call)
    return [Request(_widest(group), tuple(group)) for group in by_key.values()]


def _widest(calls: Sequence[Call]) -> Call:
    reach = functools.reduce(Reach.joined, (call.reach for call in calls))
    first = next((call for call in calls if call.reach == reach), calls[0])
    return first if first.reach == reach else first.reaching(reach)


@dataclass(frozen=True)
class Answer:
    """A call that was answered, now or in an earlier run.

    Attributes:
        service: position of the service that was called.
        askers: who wanted the answer.
        value: the answer, as the service's `read` makes it.
    """

    service: int
    askers: tuple[Asker, ...]
    value: Any


@dataclass(frozen=True)
class FailedCall:
    """A call that has no answer.

    Attributes:
        service: position of the service that was called.
        bucket: of the query.
        failure: why; one is kept for every query that wanted the answer.
    """

    service: int
    bucket: int
    failure: Failure


@dataclass(frozen=True)
class Usage:
    """What a quota pool was used for.

    Attributes:
        pool: its name.
        calls: attempts that were made.
        ledger_hits: requests that the ledger answered.
        records: names of the ledger's records that say the same.
    """

    pool: str
    calls: int
    ledger_hits: int
    records: tuple[str, ...] = ()


def content_key(asked: Mapping[str, Any]) -> str:
    """The name of a request by its content: equal requests have one name, in any process and any run.

    Args:
        asked: whatever decides the answer, as JSON values: service, parameters, text, version of the corpus.

    >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
