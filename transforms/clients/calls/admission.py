"""Admission control of one lane: slots bound concurrency, the pacer bounds the rate in calls and in tokens.

queue ─► breaker of the service ─► slot ─► pacer: requests, tokens ─► attempt ─► settle the tokens, free the slot
"""

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from rankbeam.transforms.clients.calls.health import Breaker, StartedAttempt, StepBreaker
from rankbeam.transforms.clients.clock import Clock, is_set_within
from rankbeam.transforms.kernels.pacing import Pacer, TokenReservation, first_to_begin, lane_pacer
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, FailureKind

_LOOK_AGAIN_S = 0.1
_MOST_CANDIDATES = 9  # waiting calls that are considered: no call is overtaken by more than eight


class LaneStopped(Exception):
    """The lane was stopped; raised in attempts that wait to begin."""


def window(quota: Quota) -> int | None:
    """The most tokens that one call may use; None if tokens are not counted.

    >>> window(Quota(600)), window(Quota(600, tokens_per_minute=9000, lanes=2))
    (None, 4500)
    """
    limits = (
        lane_pacer(quota.requests_per_minute, lane, quota.lanes, quota.tokens_per_minute).tokens
        for lane in range(quota.lanes)
    )
    return min((limit.per_minute for limit in limits if limit is not None), default=None)


@dataclass(eq=False)
class Permit:
    """The right to make one attempt."""

    begun: tuple[StartedAttempt, StartedAttempt]  # as counted by the breakers of the service and of the step's answers
    reservation: TokenReservation | None  # the reserved tokens; None if tokens are not counted
    used: float | None = None  # tokens that the attempt used; None until that is known
    is_usable: bool = True


@dataclass(eq=False)
class _Waiter:
    number: int
    breaker: StepBreaker
    tokens: float
    is_new: bool
    overtaken: int = 0
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Admission:
    """Gives permits for attempts in one lane of a quota, first come, first served.

    A large call may be overtaken by up to eight that need fewer tokens. While the breaker of a service is open, its
    calls leave the queue, and new calls become probes before calls that failed before.
    """

    def __init__(self, quota: Quota, lane: int, clock: Clock, is_held: Callable[[], bool]) -> None:
        self._pacer: Pacer = lane_pacer(quota.requests_per_minute, lane, quota.lanes, quota.tokens_per_minute)
        self._clock, self._is_held = clock, is_held
        self._slots = quota.slots(lane)
        self._lines: dict[StepBreaker, list[_Waiter]] = {}
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._stop = asyncio.Event()
        self.waited_s = 0.0

    @asynccontextmanager
    async def attempt(self, breaker: StepBreaker, tokens: int, *, is_new: bool) -> AsyncIterator[Permit]:
        """Wait until an attempt may begin; `tokens` is the most that it may use, and the block makes it at once."""
        permit = await self._permit(breaker, tokens, is_new)
        try:
            try:
                yield permit
            finally:
                is_closed = self._allows(breaker)
            breaker.answered(permit.begun, self._clock.monotonic(), is_usable=permit.is_usable)
        except CallError as error:
            breaker.failed(permit.begun, error, self._clock.monotonic())
            self._note_failure(permit, error)
            raise
        except BaseException:
            breaker.ended(permit.begun, self._clock.monotonic())
            raise
        finally:
            self._slots += 1
            if permit.used is not None:
                self._pacer.settle(permit.reservation, permit.used)
            self._wake_next()
            if not (is_closed and self._allows(breaker)):
                breaker.service.notify()  # attempts of other lanes wait for this breaker

    def watch(self, breaker: Breaker) -> None:
        """Check a breaker again whenever an attempt of another lane changes it."""
        breaker.on_change.append(self._wake_next)

    def unwatch(self, breaker: Breaker) -> None:
        breaker.on_change.remove(self._wake_next)

    def _allows(self, breaker: StepBreaker) -> bool:
        now = self._clock.monotonic()
        return breaker.wait_until(now) == now

    async def pause(self, seconds: float) -> None:
        """Wait; raises `LaneStopped` if the lane is stopped."""
        if await is_set_within(self._stop, seconds):
            raise LaneStopped

    def stop(self) -> None:
        """Let no further attempt begin; called on the loop."""
        self._stop.set()
        self._wake_next()

    def refuse_when_stopped(self) -> None:
        if self._stop.is_set():
            raise LaneStopped

    async def _permit(self, breaker: StepBreaker, tokens: float, is_new: bool) -> Permit:
        self._refuse_above_the_window(tokens)
        waiting = _Waiter(next(self._numbers), breaker, tokens, is_new)
        line = self._lines.setdefault(breaker, [])
        line.append(waiting)
        try:
            while not self._may_begin(waiting):
                waiting.woken.clear()
                self._wake_next()
                await waiting.woken.wait()
            return self._begin(waiting)
        finally:
            line.remove(waiting)
            self._wake_next()

    def _refuse_above_the_window(self, tokens: float) -> None:
        limit = self._pacer.tokens
        if limit is not None and not limit.fits(tokens):
            problem = f"the call may take {tokens:,.0f} tokens, more than the {limit.per_minute:,} a minute of its lane"
            advice = "raise tokens_per_minute, or ask for a shorter answer"
            raise CallError(FailureKind.INVALID, f"{problem}: {advice}", 0)

    def _may_begin(self, waiting: _Waiter) -> bool:
        self.refuse_when_stopped()
        if waiting.breaker.service.first_refusal is not None:  # it ends the run
            raise LaneStopped
        if waiting.breaker.is_given_up(now := self._clock.monotonic()):
            raise waiting.breaker.refusal(now)
        first, wait_s = self._first()
        return first is waiting and wait_s == 0

    def _begin(self, waiting: _Waiter) -> Permit:
        now = self._clock.monotonic()
        for other in self._candidates(now):
            other.overtaken += other.number < waiting.number
        self._slots -= 1
        return Permit(waiting.breaker.begin(), self._pacer.spend(now, waiting.tokens))

    def _first(self) -> tuple[_Waiter | None, float]:
        """The attempt to begin next, and seconds until then; None if another attempt must end first."""
        now = self._clock.monotonic()
        candidates = self._candidates(now)
        if not candidates:
            return None, self._until_a_probe_s(now)
        if not self._slots:
            return None, math.inf
        waits_s = [self._pacer.wait_s(now, waiting.tokens) for waiting in candidates]
        position = first_to_begin(waits_s, [waiting.overtaken for waiting in candidates])
        return candidates[position], max(waits_s[position], _LOOK_AGAIN_S if self._is_held() else 0.0)

    def _candidates(self, now: float) -> list[_Waiter]:
        """The first attempts that their breakers allow, in the order of the queue."""
        candidates: list[_Waiter] = []
        for breaker, line in self._lines.items():
            if line and breaker.wait_until(now) == now:
                candidates += [_probe(line, breaker)] if breaker.is_open else line[:_MOST_CANDIDATES]
        return sorted(candidates, key=lambda waiting: waiting.number)[:_MOST_CANDIDATES]

    def _until_a_probe_s(self, now: float) -> float:
        times = [breaker.wait_until(now) for breaker, line in self._lines.items() if line]
        return min((at for at in times if at is not None), default=math.inf) - now

    def _wake_next(self) -> None:
        """Wake the attempts that may begin now, and schedule the next wake-up."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock.monotonic()
        for breaker, line in self._lines.items():
            is_refused = self._stop.is_set() or breaker.is_given_up(now)
            if is_refused and line and not line[-1].woken.is_set():
                for waiting in line:
                    waiting.woken.set()
        first, wait_s = self._first()
        if first is not None and wait_s == 0:
            first.woken.set()
        elif math.isfinite(wait_s):
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._note_wait, now)

    def _note_wait(self, since: float) -> None:
        self.waited_s += self._clock.monotonic() - since
        self._wake_next()

    def _note_failure(self, permit: Permit, error: CallError) -> None:
        if error.kind is FailureKind.QUOTA:
            self._pacer.push_back(self._clock.monotonic())
            permit.used = 0.0
        elif error.changes_form:
            permit.used = 0.0
        elif error.tokens.total:
            permit.used = error.tokens.total
        elif error.kind is FailureKind.UNAVAILABLE and permit.reservation is not None:
            # Refused, or the connection dropped: few such attempts use all their tokens, and some use none.
            permit.used = min(permit.reservation.tokens, self._pacer.mean_tokens())


def _probe(line: list[_Waiter], breaker: StepBreaker) -> _Waiter:
    """The first call that has not been attempted, or else the first: calls that always fail must not block the others.

    If answers were malformed, the first in line: the service may answer a repair.
    """
    if not breaker.service.is_open:
        return line[0]
    return next((waiting for waiting in line if waiting.is_new), line[0])
