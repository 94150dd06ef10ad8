"""The calls of one quota pool in one lane: begun in order at the pool's pace, while failed calls are retried.

waiting ─► connection ─► permit ─► one attempt ─► read ─► ledger ─► the tasks that requested it
                          ▲          │ transient failure: a pause, longer each time, or as the service requests
                          └──────────┘   no permit: the service was given up, the call is not made
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from rankbeam.transforms.clients.calls.admission import Admission, LaneStopped
from rankbeam.transforms.clients.calls.attempts import Attempts
from rankbeam.transforms.clients.calls.combined_calls import CallCombiner, CombinedCall
from rankbeam.transforms.clients.calls.driver import OpenCall
from rankbeam.transforms.clients.calls.health import Breaker, NotAsked, StepBreaker
from rankbeam.transforms.clients.calls.lane_context import BudgetReservation, CallOwner
from rankbeam.transforms.clients.calls.services import Connection, Service
from rankbeam.transforms.clients.calls.unexpected_errors import UnexpectedError
from rankbeam.transforms.clients.clock import time_limit
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import CallError, FailureKind, RankbeamError
from rankbeam.transforms.records.plug_ins import class_name
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

_logger = logging.getLogger(__name__)
_WAITING_PER_SLOT = 4  # calls that may pause before another attempt, per call that may be in flight


class PoolCalls:
    """Makes the calls of one quota pool in one lane."""

    def __init__(self, quota: Quota, services: Mapping[str, Service], lane: CallOwner) -> None:
        self._quota, self._services, self._lane = quota, services, lane
        self._tally, self._sums, self._shared = lane.tally, lane.sums, lane.shared
        self._budget, self._clock = lane.shared.budget, lane.shared.clock
        self.refused = 0  # calls that were not made because of their cost
        self.admission = Admission(quota, lane.number, self._clock, lambda: lane.writer.problem is not None)
        self._open = asyncio.Semaphore(quota.slots(lane.number) * (1 + _WAITING_PER_SLOT))
        self._next = asyncio.Semaphore(1)
        self._waiting: dict[OpenCall, None] = {}
        self._together = CallCombiner()
        self._last: dict[OpenCall, None] = {}
        self._tried_before: frozenset[str] = frozenset()
        self._tried: set[str] = set()
        self._changed = asyncio.Event()
        self._misreporting: dict[str, None] = {}
        self._is_closed = False
        self._connections: dict[str, Connection] = {}
        self._breakers = {service: self._shared.breaker(service, quota.give_up_after_s) for service in services}
        self._answer_breakers: dict[tuple[str, str], Breaker] = {}
        self._recalled: set[str] = set()  # services with answers in the ledger
        for breaker in self._breakers.values():
            self.admission.watch(breaker)

    @property
    def waiting(self) -> Collection[OpenCall]:
        return [*self._waiting, *self._last]

    def add(self, open_call: OpenCall) -> None:
        (self._last if open_call.call.key in self._tried_before else self._waiting)[open_call] = None
        self._changed.set()

    def remove(self, open_call: OpenCall) -> bool:
        """Withdraw a call; returns False if it was already begun or withdrawn."""
        return any(calls.pop(open_call, open_call) is None for calls in (self._waiting, self._last))

    def ask_last(self, keys: frozenset[str]) -> None:
        """Make these calls last: they failed in an earlier run, which did not get to all other calls."""
        self._tried_before = keys
        for open_call in [open_call for open_call in self._waiting if open_call.call.key in keys]:
            del self._waiting[open_call]
            self._last[open_call] = None

    def to_ask_last(self) -> set[str] | None:
        """The keys of the calls that the next run should make last; None if they have not changed."""
        now = self._clock.monotonic()
        breakers = [*self._breakers.values(), *self._answer_breakers.values()]
        is_given_up = any(breaker.is_given_up(now) for breaker in breakers)
        tried = {*self._tried_before, *self._tried} if is_given_up else set()
        return None if tried == self._tried_before else tried

    def answered_before(self, service: str) -> None:
        self._breakers[service].answered_before()
        self._recalled.add(service)

    def warnings(self) -> list[str]:
        by_connection = (getattr(connection, "warnings", ()) for connection in self._connections.values())
        problem = "reports impossible numbers of tokens: the maximum that a call may use is counted instead"
        impossible = [f"{service} {problem}" for service in self._misreporting]
        return [*dict.fromkeys(warning for texts in by_connection for warning in texts), *impossible]

    def close(self) -> None:
        self._is_closed = True
        self._changed.set()

    def stop(self) -> None:
        """Begin no further call; calls in flight may end."""
        self.admission.stop()
        self._budget.wake()
        self._changed.set()

    async def disconnect(self) -> None:
        for breaker in self._breakers.values():
            self.admission.unwatch(breaker)
        for service in self._connections:
            await self._shared.disconnect(service)

    async def begin_all(self) -> None:
        with suppress(LaneStopped):
            while (open_call := await self._first_waiting()) is not None:
                await self._begin(open_call)

    async def _first_waiting(self) -> OpenCall | None:
        """The next call to begin; None at the end."""
        await self._open.acquire()
        await self._next.acquire()  # one new call at a time waits for admission, besides retries
        while not self._waiting and not self._last:
            self.admission.refuse_when_stopped()
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        self.admission.refuse_when_stopped()
        return next(iter(self._waiting or self._last))

    async def _begin(self, open_call: OpenCall) -> None:
        service = open_call.call.service
        if service not in self._connections:
            self._connections[service] = await self._shared.connect(service)
            if (access := getattr(self._services[service], "access", None)) is not None:
                self._breakers[service].try_first(access)
        if self.remove(open_call):  # otherwise the ledger has answered it meanwhile
            most = getattr(self._connections[service], "texts_per_request", 1)
            self._lane.in_flight.begin(self._ask(self._together.joined(open_call, self._waiting, most)))
        else:
            self._open.release()
            self._next.release()

    async def _ask(self, open_call: OpenCall) -> None:
        """Make attempts until there is an answer, or another attempt would not help."""
        attempts = Attempts()
        try:
            while (pause_s := await self._attempt(open_call, attempts)) is not None:
                await self.admission.pause(pause_s)
        except CallError as error:
            if attempts.made and open_call.call.key is not None:
                self._tried.add(open_call.call.key)
            is_final = error.kind is FailureKind.MALFORMED and not isinstance(error, NotAsked)
            if is_final and open_call.call.keeps_malformed and attempts.refused is not None:
                reply = Reply(attempts.refused, attempts.tokens, attempts=attempts.made)
                self._settle(open_call, reply, open_call.read(reply), attempts)
            else:
                self._fail(open_call, CallError(error.kind, error.message, attempts.made, tokens=attempts.tokens))
        except LaneStopped:
            pass  # the calls that wait behind it stop as well
        finally:
            service, positions = open_call.call.service, open_call.positions()
            if attempts.answered_s is not None:
                self._sums.add_duration(service, positions, attempts.answered_s)
            if attempts.made and not attempts.are_settled:
                self._sums.add(service, positions, attempts.made, attempts.tokens)
            if not attempts.made:
                self._next.release()
            self._open.release()

    # Each call of Tenacity's loop would leave a reference cycle of some twenty objects until Python collects garbage.
    async def _attempt(self, open_call: OpenCall, attempts: Attempts) -> float | None:
        """Make an attempt; returns the pause before the next one, or None after an answer."""
        before = attempts.made
        try:
            reply, outcomes = await self._answer(open_call, attempts)
            self._settle(open_call, reply, outcomes, attempts)
            return None
        except CallError as error:
            if isinstance(error, UnexpectedError):
                self._lane.unexpected.add(open_call.call.service, error)
            breaker = self._breakers[open_call.call.service]
            if breaker.access is not None and breaker.first_refusal is error:
                raise breaker.access.refusal(open_call.call.service, error) from None
            if not attempts.may_pass(error) or (isinstance(open_call, CombinedCall) and open_call.splits_at(error)):
                raise
            pause_s = attempts.pause_s(error)
            would_begin = self._clock.monotonic() + pause_s
            if attempts.counted >= self._quota.attempts or would_begin - attempts.began >= self._quota.give_up_after_s:
                raise
            return pause_s
        finally:  # the ledger has the answer before the call is no longer in flight
            if attempts.made > before:
                self._lane.writer.count_in_flight(-1)

    def _settle(self, open_call: OpenCall, reply: Reply, outcomes: Sequence[Any], attempts: Attempts) -> None:
        seconds, service = attempts.seconds, open_call.call.service
        attempts.are_settled = True
        # The first part carries all attempts, so that sums are right.
        for part, part_reply, values in open_call.parts_of(reply, outcomes):
            self._sums.add(service, part.positions(), part_reply.attempts, part_reply.tokens)
            self._tally[Counter.CALLS_DONE, service] += 1
            self._tally[Counter.CALLS_FAILED, service] += any(isinstance(value, CallError) for value in values)
            self._lane.answered(part, part_reply, values, seconds)
            seconds = 0.0

    async def _answer(self, open_call: OpenCall, attempts: Attempts) -> tuple[Reply, list[Any]]:
        """Wait for a permit, then make an attempt at once: other work in between would lead to bursts of calls."""
        call, service = open_call.call, open_call.call.service
        most, is_new = self._most_tokens(call, attempts), not attempts.made
        breaker = self._breaker(call)
        async with (
            self._alone_if_unknown(service, most),
            self._budget.reserved(self._most_cost(service, most), self.admission.refuse_when_stopped) as reservation,
        ):
            try:
                async with self.admission.attempt(breaker, most.total, is_new=is_new) as permit:
                    if is_new:
                        self._next.release()
                    attempts.begin(self._clock.monotonic())
                    self._lane.writer.count_in_flight(1)
                    self._tally[Counter.RETRIES, service] += not is_new
                    self._tally[Counter.CALLS_MADE, service] += 1
                    reservation.cost = self._cost(most)
                    reply = await self._call(call, attempts, reservation)
                    permit.used = reply.tokens.total
                    reply = replace(reply, tokens=attempts.tokens, attempts=attempts.made)
                    outcomes = open_call.read(reply)
                    attempts.refuse(reply.answer, outcomes)
                    permit.is_usable = any(not isinstance(outcome, CallError) for outcome in outcomes)
            finally:
                _report(service, breaker.service)
                _report(f"{service}, {call.step}" if call.step else service, breaker.answers)
        return reply, outcomes

    def _breaker(self, call: Call) -> StepBreaker:
        answers = self._shared.breaker(call.service, self._quota.give_up_after_s, call.step)
        self._answer_breakers[call.service, call.step] = answers
        if call.service in self._recalled:
            answers.answered_before()
        return StepBreaker(self._breakers[call.service], answers, call.key or call.payload, call.key is not None)

    async def _call(self, call: Call, attempts: Attempts, reservation: BudgetReservation) -> Reply:
        began, timeout_s = self._clock.monotonic(), self._quota.timeout_s
        try:
            async with time_limit(timeout_s):
                connection = self._connections[call.service]
                reply = await connection.call(call.payload, timeout_s, attempts.number)
            if not isinstance(reply, Reply) or not isinstance(reply.tokens, Tokens):
                problem = f"{class_name(connection)}.call must return a Reply, whose tokens are Tokens"
                raise CallError(FailureKind.MALFORMED, problem)
        except TimeoutError as error:
            problem = f"no answer within {timeout_s:g} s (timeout_s of its quota)"
            raise CallError(FailureKind.TIMEOUT, problem) from error
        except CallError as error:
            tokens = self._possible(call, error.tokens)
            self._count_tokens(call.service, attempts, tokens)
            if error.kind is not FailureKind.TIMEOUT:  # an answer that came too late may be charged
                reservation.cost = self._cost(tokens)
            if error.stops_pool:
                for breaker in self._breakers.values():
                    breaker.stop(error, self._clock.monotonic())
                    breaker.notify()
            raise
        except RankbeamError:
            raise
        except Exception as error:  # from a plug-in, or an answer in an unforeseen shape
            raise UnexpectedError(error) from None
        finally:
            took_s = self._clock.monotonic() - began
            attempts.seconds += took_s
        attempts.answered_s = took_s
        reply = replace(reply, tokens=self._possible(call, reply.tokens))
        self._count_tokens(call.service, attempts, reply.tokens)
        reservation.cost = self._cost(reply.tokens)
        self._shared.dearest[call.service] = max(self._shared.dearest.get(call.service, 0.0), reservation.cost)
        return reply

    def _possible(self, call: Call, tokens: Tokens) -> Tokens:
        """The tokens that an attempt reports; if no call can use that many, the most that it may use."""
        if tokens.is_possible:
            return tokens
        self._misreporting[call.service] = None
        return self._services[call.service].most_tokens(call.payload)

    def _most_tokens(self, call: Call, attempts: Attempts) -> Tokens:
        """Most tokens of the next attempt; not computed if no quota or budget depends on them."""
        if self._quota.tokens_per_minute is None and not self._budget.is_limited:
            return NO_TOKENS
        most = self._services[call.service].most_tokens(call.payload)
        return replace(most, output=2 * most.output) if attempts.is_longer else most

    @asynccontextmanager
    async def _alone_if_unknown(self, service: str, most: Tokens) -> AsyncIterator[None]:
        """Let an attempt whose cost is only known afterwards go alone, until one has been answered."""
        dearest, is_priced = self._shared.dearest, self._quota.prices is not None
        if most.total == 0 and is_priced and self._budget.is_limited and service not in dearest:
            async with self._shared.first_of(service):
                if service not in dearest:
                    yield
                    return
        yield

    def _most_cost(self, service: str, most: Tokens) -> float:
        """The most that the next attempt may cost; the highest cost so far if its tokens are only known afterwards."""
        return self._cost(most) if most.total else max(self._cost(most), self._shared.dearest.get(service, 0.0))

    def _cost(self, tokens: Tokens) -> float:
        return self._quota.cost(1, tokens) or 0.0

    def _count_tokens(self, service: str, attempts: Attempts, tokens: Tokens) -> None:
        attempts.tokens += tokens
        self._tally[Counter.INPUT_TOKENS, service] += tokens.input
        self._tally[Counter.CACHED_TOKENS, service] += tokens.cached
        self._tally[Counter.OUTPUT_TOKENS, service] += tokens.output

    def _fail(self, open_call: OpenCall, error: CallError) -> None:
        if isinstance(open_call, CombinedCall):
            again = self._together.split(open_call, error)
            for part in open_call.parts:
                if again:
                    self.add(part)
                    continue
                if error.attempts and part.call.key is not None:
                    self._tried.add(part.call.key)
                self._fail(part, error)
            return
        self._tally[Counter.CALLS_DONE, open_call.call.service] += 1
        self._tally[Counter.CALLS_FAILED, open_call.call.service] += 1
        self.refused += error.kind is FailureKind.OVER_BUDGET
        self._lane.failed(open_call, error)


def _report(name: str, breaker: Breaker) -> None:
    if breaker.is_open == breaker.is_reported:
        return
    breaker.is_reported = breaker.is_open
    if breaker.is_open:
        _logger.warning("%s: %s", name, breaker.report())
    else:
        _logger.warning("%s: the service answers again, and calls continue", name)
