"""The parts that the pools of one lane share."""

import asyncio
from collections import Counter as Tally
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from rankbeam.transforms.clients.calls.attempts import Answered, Attempts
from rankbeam.transforms.clients.calls.driver import OpenCall
from rankbeam.transforms.clients.calls.shared import Budget, SharedServices
from rankbeam.transforms.clients.calls.unexpected import UnexpectedErrors
from rankbeam.transforms.clients.clock import Clock
from rankbeam.transforms.kernels.durations import bin_of
from rankbeam.transforms.records.calls.steps import CallUsage
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.reply import NO_TOKENS


class InFlight:
    """Runs calls concurrently. A call is paid for once it is begun, so an error of one does not cancel the others."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._calls: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    def begin(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._ended)

    async def end(self) -> None:
        """Wait until all calls have ended; raises the first exception of a call, if any."""
        while self._calls:
            await asyncio.wait(self._calls)
        if self._errors:
            raise self._errors[0]

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._calls.discard(task)
        error = asyncio.CancelledError("a call was cancelled") if task.cancelled() else task.exception()
        if error is not None:
            self._errors.append(error)
            self._stop()


class _Sum:
    """A `CallUsage` that grows."""

    def __init__(self) -> None:
        self.calls = self.shared = 0
        self.tokens = NO_TOKENS
        self.durations: Tally[int] = Tally()

    def add(self, attempts: Attempts, *, is_shared: bool) -> None:
        self.calls += attempts.made
        self.shared += attempts.made if is_shared else 0
        self.tokens += attempts.tokens
        if attempts.answered_s is not None:
            self.durations[bin_of(attempts.answered_s)] += 1

    def usage(self, position: int | None) -> CallUsage:
        return CallUsage(position, self.calls, self.shared, self.tokens, dict(self.durations))


class CallSums:
    """Costs and durations of calls, by service and position."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int | None], _Sum] = {}

    def add(self, service: str, positions: Collection[int], attempts: Attempts) -> None:
        for position in (None, *positions):
            total = self._sums.setdefault((service, position), _Sum())
            total.add(attempts, is_shared=position is not None and len(positions) > 1)

    def usages(self) -> list[tuple[str, CallUsage]]:
        return [(service, total.usage(position)) for (service, position), total in list(self._sums.items())]


Counts = Tally[tuple[Counter, str]]
"""Counts by counter and service."""


class CallOwner(Protocol):
    """The lane that calls are made for."""

    def is_held(self) -> bool:
        """True while no call may begin, because answers cannot be written."""
        ...

    def answered(self, answered: Answered) -> None: ...

    def failed(self, open_call: OpenCall, error: CallError) -> None:
        """Take the final failure of a call."""
        ...


@dataclass(frozen=True)
class LaneContext:
    """The parts that the pools of one lane share."""

    lane: int
    owner: CallOwner
    count_in_flight: Callable[[int], None]  # 1 when an attempt begins, -1 when it has ended
    shared: SharedServices
    tally: Counts
    sums: CallSums
    in_flight: InFlight
    budget: Budget
    unexpected: UnexpectedErrors
    clock: Clock
