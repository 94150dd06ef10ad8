"""Calls to remote services: what is asked, out of which budget, and what came back."""

import functools
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transforms.records.failures import Failure

MOST_IN_THE_AIR = 1000
"""Calls that one process holds at once without trouble; a pool that needs more has several lanes."""

Asker = tuple[int, str]
"""Who wants an answer: the bucket and the id of a query."""


@dataclass(frozen=True)
class Quota:
    """The budget that the calls of one pool share, and how each of them is made.

    Attributes:
        requests_per_minute: calls begun in any minute, at most; every attempt counts.
        concurrent_calls: calls in the air at once, at most; None for as many as there are at the full rate.
        timeout_s: after which one attempt is given up.
        attempts: how often a call is tried, at most.
        give_up_after_s: after which no further attempt is begun, pauses included.
        lanes: streams that each own an equal share of the budget; one, unless one process cannot hold the calls that
            are in the air at the full rate.
        price_per_1000: of a thousand calls, in whatever currency the user counts in; None where nobody said.
    """

    requests_per_minute: float
    concurrent_calls: int | None = None
    timeout_s: float = 60.0
    attempts: int = 9
    give_up_after_s: float = 600.0
    lanes: int = 1
    price_per_1000: float | None = None

    @property
    def most_lanes(self) -> int:
        """How many lanes can each begin a call every second, and have one in the air.

        >>> Quota(1500).most_lanes, Quota(1500, concurrent_calls=3).most_lanes
        (25, 3)
        """
        per_second = math.ceil(self.requests_per_minute / 60)
        return per_second if self.concurrent_calls is None else min(per_second, self.concurrent_calls)

    def slots(self, lane: int) -> int:
        """How many calls a lane may have in the air.

        >>> quota = Quota(1500, concurrent_calls=10, lanes=4)
        >>> [quota.slots(lane) for lane in range(4)]
        [3, 3, 2, 2]
        """
        if self.concurrent_calls is None:
            return MOST_IN_THE_AIR
        return self.concurrent_calls // self.lanes + (lane < self.concurrent_calls % self.lanes)


@dataclass(frozen=True)
class Reach:
    """How far into a ranking a call goes. An answer of a far reach also answers calls of a lesser one.

    Attributes:
        results: at most how many are wanted.
        distance: results at this distance or farther are not wanted; None where all are.
    """

    results: int
    distance: float | None = None

    def covers(self, other: "Reach") -> bool:
        """Whether what this reach brings holds all that the other one would.

        >>> Reach(100, None).covers(Reach(10, 0.5)), Reach(100, 0.5).covers(Reach(10, None))
        (True, False)
        """
        near = other.distance is not None and self.distance is not None and other.distance <= self.distance
        return self.results >= other.results and (self.distance is None or near)

    def joined(self, other: "Reach") -> "Reach":
        """The least reach that covers both.

        >>> Reach(10, None).joined(Reach(100, 0.5))
        Reach(results=100, distance=None)
        """
        distance = None if self.distance is None or other.distance is None else max(self.distance, other.distance)
        return Reach(max(self.results, other.results), distance)


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
