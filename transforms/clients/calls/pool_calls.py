"""The calls of one quota pool in one lane: begun one after the other at its pace, and tried again beside new ones.

waiting ─► connection ─► permit ─► one attempt ─► read ─► ledger ─► the tasks that want it
                          ▲          │ transient failure: a pause, as the service asks for or longer each time
                          └──────────┘
"""

import asyncio
import time
from collections import Counter as Tally
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_before_delay

from rankbeam.transforms.clients.calls.attempts import Attempts, pause_s
from rankbeam.transforms.clients.calls.driver import Flight
from rankbeam.transforms.clients.calls.in_flight import InFlight
from rankbeam.transforms.clients.calls.services import Connection, Service
from rankbeam.transforms.clients.calls.turns import Stopped, Turns
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.reply import Reply, Tokens
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

_HOPELESS = 20  # calls that failed, with none that succeeded, after which a service is not asked any more
_LOOK_AGAIN_S = 0.1
_WAITING_PER_SLOT = 4  # calls that pause before another attempt, for each that may be in flight

Counts = Tally[tuple[Counter, str]]
"""How much was counted, by counter and service."""


@dataclass(frozen=True)
class Answered:
    """A call that a service answered.

    Attributes:
        flight: the call.
        reply: the answer, with the tokens of all attempts.
        outcomes: what each of its tasks reads in it.
        attempts: how many were made.
        seconds: that they took, without pauses.
    """

    flight: Flight
    reply: Reply
    outcomes: Sequence[Any]
    attempts: int
    seconds: float


class PoolCalls:
    """Makes the calls of one quota pool in one lane.

    Args:
        quota: of the whole pool.
        lane: the number of the lane, from 0.
        services: that the pool pays for.
        tally: where everything is counted.
        in_flight: runs the calls of the lane.
        is_held: whether no call may begin just now.
        answered: takes a call that was answered.
        failed: takes a call that failed for good, and why.
    """

    def __init__(
        self,
        quota: Quota,
        lane: int,
        services: Mapping[str, Service],
        tally: Counts,
        in_flight: InFlight,
        is_held: Callable[[], bool],
        answered: Callable[[Answered], None],
        failed: Callable[[Flight, CallError], None],
    ) -> None:
        self._quota, self._services, self._tally = quota, services, tally
        self._in_flight, self._answered, self._failed = in_flight, answered, failed
        self.turns = Turns(quota, lane, is_held=is_held)
        self._open = asyncio.Semaphore(quota.slots(lane) * (1 + _WAITING_PER_SLOT))
        self._next = asyncio.Semaphore(1)
        self._waiting: dict[Flight, None] = {}
        self._changed = asyncio.Event()
        self._is_closed = False
        self._connections: dict[str, Connection] = {}
        self._health = {service: _Health() for service in services}

    @property
    def waiting(self) -> Collection[Flight]:
        """The calls that were not begun so far."""
        return self._waiting.keys()

    def add(self, flight: Flight) -> None:
        """Take a call, to be made when its turn comes."""
        self._waiting[flight] = None
        self._changed.set()

    def remove(self, flight: Flight) -> None:
        """Give back a call that was not begun."""
        del self._waiting[flight]

    def close(self) -> None:
        """No further call will come."""
        self._is_closed = True
        self._changed.set()

    def stop(self) -> None:
        """Begin no further call; those in flight may end."""
        self.turns.stop()
        self._changed.set()

    async def disconnect(self) -> None:
        """Release what the connections hold."""
        for connection in self._connections.values():
            await connection.close()

    async def begin_all(self) -> None:
        """Begin the calls that come, until there will be no more, or until it is stopped."""
        with suppress(Stopped):
            while (flight := await self._first_waiting()) is not None:
                await self._begin(flight)

    async def _first_waiting(self) -> Flight | None:
        """The call that is begun next, once it may wait for its turn; None at the end."""
        await self._open.acquire()
        await self._next.acquire()  # one new call at a time waits for its turn, beside those that are tried again
        while not self._waiting:
            self.turns.refuse_when_stopped()
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        self.turns.refuse_when_stopped()
        return next(iter(self._waiting))

    async def _begin(self, flight: Flight) -> None:
        service = flight.call.service
        if service not in self._connections:
            self._connections[service] = await self._services[service].connect()
        health = self._health[service]
        while health.is_suspect and health.asking:  # answers may be slower than refusals
            await self.turns.pause(_LOOK_AGAIN_S)
        is_wanted = flight in self._waiting  # the ledger may have answered it meanwhile
        self._waiting.pop(flight, None)
        if not is_wanted or health.is_suspect:
            self._open.release()
            self._next.release()
            if is_wanted:
                self._fail(flight, health.hopeless())
        else:
            health.asking += 1
            self._in_flight.begin(self._ask(flight))

    async def _ask(self, flight: Flight) -> None:
        """Ask until there is an answer, or no hope of one."""
        attempts = Attempts()
        retrying = AsyncRetrying(
            retry=retry_if_exception(attempts.may_pass),
            wait=pause_s,
            stop=stop_after_attempt(self._quota.attempts) | stop_before_delay(self._quota.give_up_after_s),
            sleep=self.turns.pause,
            reraise=True,
        )
        statistics = retrying.statistics
        health = self._health[flight.call.service]
        try:
            await retrying(self._attempt, flight, attempts, statistics)
        except CallError as error:
            health.failed(error)
            self._fail(flight, CallError(error.kind, error.message, int(statistics["attempt_number"])))
        except Stopped:
            self._next.release()  # the next one will see it too
        finally:
            health.asking -= 1
            self._open.release()

    async def _attempt(self, flight: Flight, attempts: Attempts, statistics: Mapping[str, float]) -> None:
        """Wait for a permit and make the call at once: nothing else runs in between, or calls come in bursts."""
        await self.turns.take()
        number, service = int(statistics["attempt_number"]), flight.call.service
        if number == 1:
            self._next.release()
        else:
            self._tally[Counter.RETRIES, service] += 1
        answer = await self._call(flight, attempts)
        reply = Reply(answer, attempts.tokens)
        outcomes = flight.read(reply)
        attempts.refuse(outcomes)
        self._health[service].answered()
        self._tally[Counter.CALLS_DONE, service] += 1
        self._tally[Counter.CALLS_FAILED, service] += any(isinstance(outcome, CallError) for outcome in outcomes)
        outcomes = [_after(outcome, number) for outcome in outcomes]
        self._answered(Answered(flight, reply, outcomes, number, attempts.seconds))

    async def _call(self, flight: Flight, attempts: Attempts) -> str:
        """The answer to one attempt; the permit is given back."""
        call, timeout_s = flight.call, self._quota.timeout_s
        self._tally[Counter.CALLS_MADE, call.service] += 1
        began = time.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._connections[call.service].call(call.payload, timeout_s, attempts.number)
        except TimeoutError as error:
            raise CallError(FailureKind.TIMEOUT, f"no answer within {timeout_s:g} s") from error
        except CallError as error:
            self._count(call.service, attempts, error.tokens)
            if error.kind is FailureKind.QUOTA:
                self.turns.push_back()
            raise
        finally:
            self.turns.give_back()
            attempts.seconds += time.monotonic() - began
        self._count(call.service, attempts, reply.tokens)
        return reply.answer

    def _count(self, service: str, attempts: Attempts, tokens: Tokens) -> None:
        attempts.tokens += tokens
        self._tally[Counter.INPUT_TOKENS, service] += tokens.input
        self._tally[Counter.CACHED_TOKENS, service] += tokens.cached
        self._tally[Counter.OUTPUT_TOKENS, service] += tokens.output

    def _fail(self, flight: Flight, error: CallError) -> None:
        self._tally[Counter.CALLS_DONE, flight.call.service] += 1
        self._tally[Counter.CALLS_FAILED, flight.call.service] += 1
        self._failed(flight, error)


class _Health:
    """Whether there is any sense in asking a service further.

    Attributes:
        asking: calls that were begun, and have not ended.
    """

    def __init__(self) -> None:
        self._failures, self._has_answered = 0, False
        self._last: CallError | None = None
        self.asking = 0

    def answered(self) -> None:
        self._has_answered = True

    def failed(self, error: CallError) -> None:
        self._failures, self._last = self._failures + 1, error

    @property
    def is_suspect(self) -> bool:
        """Whether it only ever failed so far, and that often."""
        return not self._has_answered and self._failures >= _HOPELESS

    def hopeless(self) -> CallError:
        """Why it is not asked any more."""
        kind, said = (FailureKind.UNAVAILABLE, "") if self._last is None else (self._last.kind, self._last.message)
        return CallError(kind, f"not asked: the first {self._failures} calls all failed, the last with: {said}", 0)


def _after(outcome: Any, attempts: int) -> Any:
    """An outcome; an error says after how many attempts."""
    return CallError(outcome.kind, outcome.message, attempts) if isinstance(outcome, CallError) else outcome
