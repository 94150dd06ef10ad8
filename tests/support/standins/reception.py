"""Reception of every request, whatever the protocol: it is counted, and its fault and latency are chosen."""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.standins.faults import Faults, fraction
from support.standins.quota import Meter

KEPT_REQUESTS = 20
OVER_QUOTA = "over_quota"


@dataclass(frozen=True)
class Settings:
    """Behaviour of a stand-in; `serve` describes each setting."""

    answers: Mapping[str, Sequence[Mapping[str, Any]]]
    documents: Sequence[str]
    faults: Faults
    latency_s: tuple[float, float]
    slow: tuple[float, float]
    quota_per_minute: float | None
    enforce: bool
    streams_per_connection: int | None
    certificate: str | None
    private_key: str | None
    port: int = 0
    rag: Mapping[str, Any] = field(default_factory=dict)
    buckets: Sequence[str] = ()
    by_second: bool = True
    batch: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stats:
    """Statistics of a stand-in's requests.

    Attributes:
        calls: requests that came.
        answered: those that got a proper answer.
        faults: by kind, those that went wrong; "over_quota" where the quota was enforced.
        violations_per_second: requests that were over the quota of the second before them.
        violations_per_minute: requests that were over the quota of the minute before them.
        busiest_second: the most requests in any second.
        busiest_minute: the most requests in any minute.
        most_open: the most requests in the air at once.
        most_streams_per_connection: the most of them on one connection.
        second_pages: number of requests for a further page of results.
        arrivals: when each request came, in seconds of `time.monotonic`, which all processes of a machine share.
        queries: number of requests by query.
        requests: the last ones, as JSON: "query", "metadata" or "headers", "message" or "body".
        tokens: time of each answer of a model, and its tokens of input and output.
        extra: further values of the service.
    """

    calls: int
    answered: int
    faults: dict[str, int]
    violations_per_second: int
    violations_per_minute: int
    busiest_second: int
    busiest_minute: int
    most_open: int
    most_streams_per_connection: int
    second_pages: int
    arrivals: list[float]
    queries: dict[str, int]
    requests: list[dict[str, Any]]
    tokens: list[tuple[float, int]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Visit:
    """One request that is in.

    Attributes:
        query: the request's query.
        connection: it came on.
        latency_s: seconds until it is answered.
        fault: its fault; None if it succeeds.
        hint_s: when the client should come again, where the fault says so.
    """

    query: str
    connection: str
    latency_s: float
    fault: str | None
    hint_s: float


@dataclass
class Reception:
    """Counts requests and decides about them; used from one thread.

    Attributes:
        settings: settings of the stand-in.
        clock: seconds that never go back.
        second_pages: number of requests for a further page; the service that has pages counts them.
        answered: proper answers; whoever gives them counts.
        extra: further values of the service.
    """

    settings: Settings
    clock: Callable[[], float] = time.monotonic
    second_pages: int = field(default=0, init=False)
    answered: int = field(default=0, init=False)
    extra: Callable[[], dict[str, Any]] = field(default=dict, init=False)
    _arrivals: list[float] = field(default_factory=list)
    _faults: Counter[str] = field(default_factory=Counter)
    _queries: Counter[str] = field(default_factory=Counter)
    _requests: deque[Callable[[], dict[str, Any]]] = field(default_factory=lambda: deque(maxlen=KEPT_REQUESTS))
    _open: Counter[str] = field(default_factory=Counter)
    _tokens: list[tuple[float, int]] = field(default_factory=list)
    _in: int = 0
    _most_open: int = 0
    _most_streams: int = 0

    def __post_init__(self) -> None:
        self._meter = Meter(self.settings.quota_per_minute, by_second=self.settings.by_second)

    def enter(self, query: str, connection: str, shown: Callable[[], dict[str, Any]]) -> Visit:
        """Count a request; whoever does must `leave` with the visit.

        Args:
            query: the request's query.
            connection: it came on.
            shown: the request as JSON, made when somebody wants to see it.
        """
        now_s = self.clock()
        self._arrivals.append(now_s)
        wait_s = self._meter.arrive(now_s)
        self._queries[query] += 1
        self._requests.append(shown)
        self._come_in(connection)
        return self._decided(query, connection, wait_s)

    def note(self, queries: Sequence[str]) -> None:
        """Count further queries of a request."""
        self._queries.update(queries)

    def leave(self, visit: Visit) -> None:
        """Count that a request is over, one way or the other."""
        self._in -= 1
        self._open[visit.connection] -= 1
        if self._open[visit.connection] == 0:
            del self._open[visit.connection]

    def count_tokens(self, tokens: int) -> None:
        """Count the tokens of an answer that is given now."""
        self._tokens.append((self.clock(), tokens))

    def stats(self) -> Stats:
        """Statistics so far."""
        return Stats(
            calls=len(self._arrivals),
            answered=self.answered,
            faults=dict(self._faults),
            violations_per_second=self._meter.second.violations,
            violations_per_minute=self._meter.minute.violations,
            busiest_second=self._meter.second.busiest,
            busiest_minute=self._meter.minute.busiest,
            most_open=self._most_open,
            most_streams_per_connection=self._most_streams,
            second_pages=self.second_pages,
            arrivals=list(self._arrivals),
            queries=dict(self._queries),
            requests=[shown() for shown in self._requests],
            tokens=list(self._tokens),
            extra=self.extra(),
        )

    def _come_in(self, connection: str) -> None:
        self._in += 1
        self._open[connection] += 1
        self._most_open = max(self._most_open, self._in)
        self._most_streams = max(self._most_streams, self._open[connection])

    def _decided(self, query: str, connection: str, wait_s: float) -> Visit:
        faults = self.settings.faults
        if self.settings.enforce and wait_s > 0:
            self._faults[OVER_QUOTA] += 1
            return Visit(query, connection, 0.0, OVER_QUOTA, wait_s)
        fault = faults.of(len(self._arrivals), query)
        if fault is not None:
            self._faults[fault] += 1
        latency_s = self._latency_s() + (faults.hang_s if fault == "hang" else 0.0)
        return Visit(query, connection, latency_s, fault, faults.hint_s)

    def _latency_s(self) -> float:
        number, (low, high) = len(self._arrivals), self.settings.latency_s
        share, slow_s = self.settings.slow
        if fraction(number, "slow") < share:
            return slow_s
        return low + (high - low) * fraction(number, "latency")
