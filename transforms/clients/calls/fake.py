"""A service without a network, for tests: a function answers, in virtual time.

It replaces a real service, as httpx's MockTransport replaces a network: all code above it is production code.
`call_all` makes calls to a service, this one or a plug-in's own, as an experiment does: at the pace of a quota, with
retries, the circuit breaker and the ledger.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rankbeam.transforms.clients.calls.fanout import SingleService
from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.clock import Clock
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call, Steps, results_or_raise
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens

_NAME = "service"


@dataclass(frozen=True)
class FakeRequest:
    """An attempt as it reaches the service.

    Attributes:
        payload: the content of the request.
        number: its number among all requests, from 1.
        repeat: its number among requests with this payload, from 1.
        at_s: when it arrived, on the clock of the calls.
    """

    payload: Any
    number: int
    repeat: int
    at_s: float


@dataclass
class FakeService:
    """A service whose answers come from a function.

    Attributes:
        answer: returns JSON values, or a Reply if tokens matter; raises CallError for a request that fails.
        latency_s: duration of a call, or a function from the request to it.
        requests: the requests received so far.
        most_in_flight: the most requests in flight at once.
    """

    answer: Callable[[FakeRequest], Any]
    latency_s: float | Callable[[FakeRequest], float] = 0.0
    requests: list[FakeRequest] = field(default_factory=list, init=False)
    most_in_flight: int = field(default=0, init=False)
    _in_flight: int = field(default=0, init=False)
    _repeats: dict[str, int] = field(default_factory=dict, init=False)

    async def connect(self) -> "FakeService":
        return self

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  the Protocol's
        self._repeats[payload] = self._repeats.get(payload, 0) + 1
        at_s = asyncio.get_running_loop().time()
        request = FakeRequest(json.loads(payload), len(self.requests) + 1, self._repeats[payload], at_s)
        self.requests.append(request)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            await asyncio.sleep(self.latency_s(request) if callable(self.latency_s) else self.latency_s)
            answer = self.answer(request)
        finally:
            self._in_flight -= 1
        return answer if isinstance(answer, Reply) else Reply(json.dumps(answer))

    async def close(self) -> None:
        """See `Connection`; there is nothing to release."""

    def read(self, answer: str) -> Any:
        """See `Service`: the JSON value."""
        try:
            return json.loads(answer)
        except ValueError as error:
            raise CallError(FailureKind.MALFORMED, f"the answer is not JSON: {error}") from error

    def most_tokens(self, payload: str) -> Tokens:
        """See `Service`: one token for every four characters of the request."""
        return Tokens(len(payload) // 4)


def call_all(
    service: Service, payloads: Iterable[Mapping[str, Any]], quota: Quota, ledger: str, clock: Clock
) -> list[Any]:
    """Make calls as an experiment does.

    Args:
        service: the service to call.
        payloads: the calls' contents, as JSON values; equal ones are one call.
        quota: pace of the calls.
        ledger: a folder of answers; calls that it answers are not made.
        clock: a `VirtualClock`, or the `SystemClock` for a service behind a network.

    Returns:
        For each payload the value that `service.read` returned, or the final CallError.
    """
    contents = [(content_key(payload), json.dumps(payload, ensure_ascii=False)) for payload in payloads]
    calls = [Call(_NAME, key, text) for key, text in dict(contents).items()]
    values = SingleService(service, _NAME, quota, Ledger(ledger), clock).done(_OneCall(service), calls)
    by_key = {call.key: value for call, value in zip(calls, values, strict=True)}
    return [by_key[key] for key, _ in contents]


@dataclass(frozen=True)
class _OneCall:
    """A work with one call, which is the item."""

    service: Service

    stage: ClassVar[str] = "call"
    services: ClassVar[tuple[str]] = (_NAME,)

    def steps(self, item: Call) -> Steps[Any]:
        (value,) = results_or_raise((yield [item]))
        return value

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  every answer is read alike
        return self.service.read(reply.answer)
