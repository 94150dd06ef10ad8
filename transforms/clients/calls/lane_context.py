"""State that the lanes of one fan-out share.

Lanes share money, memory, and one connection and one circuit breaker for each service. Each call reserves the most that
it may cost, and settles its actual cost.
"""

import asyncio
import math
from collections import Counter as Tally
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from rankbeam.transforms.clients.calls.driver import OpenCall, Outcome
from rankbeam.transforms.clients.calls.health import Breaker
from rankbeam.transforms.clients.calls.services import Connection
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.unexpected_errors import UnexpectedErrors
from rankbeam.transforms.clients.clock import Clock
from rankbeam.transforms.clients.ledger import Ledger, LedgerWriter
from rankbeam.transforms.kernels.durations import bin_of
from rankbeam.transforms.records.calls.steps import Call, CallUsage, SearchDepth
from rankbeam.transforms.records.counters import Counts
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

_ROUNDING = 1e-9  # tolerance for sums of many small costs
_MOST, _MOST_BYTES = 1000, 16 << 20  # outcomes above which the queue is full
_MOST_TASK_BYTES = 64 << 20  # of open tasks; lanes have equal shares


@dataclass
class BudgetReservation:
    """Money reserved for one attempt."""

    cost: float = 0.0


class Budget:
    """The money that the lanes of one loop share: one lane may spend what another does not need."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.spent = self._reserved = 0.0
        self._changed = asyncio.Event()

    @property
    def is_limited(self) -> bool:
        return math.isfinite(self.limit)

    @asynccontextmanager
    async def reserved(self, most: float, refuse_when_stopped: Callable[[], None]) -> AsyncIterator[BudgetReservation]:
        """Reserve the most that an attempt may cost; waits for attempts in flight to settle if too little is left."""
        while most > 0 and self._is_over(self.spent + self._reserved + most):
            refuse_when_stopped()
            if self._is_over(self.spent + most):
                left = max(0.0, self.limit - self.spent)
                problem = f"not asked: it may cost {most:,.4g}, and {left:,.4g} of max_cost is left"
                raise CallError(FailureKind.OVER_BUDGET, problem, 0)
            self._changed.clear()
            await self._changed.wait()
        self._reserved += most
        reservation = BudgetReservation()
        try:
            yield reservation
        finally:
            self._reserved -= most
            self.spent += reservation.cost
            self.wake()

    def wake(self) -> None:
        self._changed.set()

    def _is_over(self, cost: float) -> bool:
        return cost > self.limit * (1 + _ROUNDING)


class OutcomeQueue:
    """A queue of outcomes. Any thread may add one, even if the queue is full; None only wakes the waiting thread."""

    def __init__(self, clock: Clock, on_room: Callable[[], object]) -> None:
        self._changed, self._on_room = clock.condition(), on_room
        self._outcomes = deque[tuple[Outcome | None, int]]()
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._outcomes)

    @property
    def is_full(self) -> bool:
        """True while too many outcomes wait; meanwhile, neither tasks nor ledger answers are read."""
        return len(self._outcomes) > _MOST or self.held_bytes > _MOST_BYTES

    def put(self, outcome: Outcome | None, size: int = 0) -> None:
        with self._changed:
            self._outcomes.append((outcome, size))
            self.held_bytes += size
            self._changed.notify_all()

    def get(self, timeout_s: float = 0.0) -> Outcome | None:
        """Take the first outcome; None if there is none within the timeout."""
        with self._changed:
            if not self._outcomes and timeout_s > 0:
                self._changed.wait(timeout_s)
            was_full = self.is_full
            outcome, size = self._outcomes.popleft() if self._outcomes else (None, 0)
            self.held_bytes -= size
            has_room_again = was_full and not self.is_full
        if has_room_again:
            self._on_room()
        return outcome


class FanOutContext:
    """The stage, its services and the ledger, as the lanes that run together on one loop use them.

    If one lane learns that a service is down, or refuses a form of request, all lanes know it. Lanes in other processes
    learn it for themselves.
    """

    def __init__(self, stage: Stage, ledger: Ledger, clock: Clock, on_room: Callable[[], object]) -> None:
        self.stage, self.ledger, self.clock = stage, ledger, clock
        self.lookup = ledger.lookup()
        self.outcomes = OutcomeQueue(clock, on_room)
        self.budget = Budget(0.0)  # every lane that begins adds its part
        self.added: dict[str, SearchDepth | None] = {}  # answers in the ledger that are not in the index yet
        self.writers: list[LedgerWriter] = []  # one for each lane
        self._requests: dict[str, tuple[OpenCall, list[tuple[OpenCall, CallOwner]]]] = {}
        self._breakers: dict[tuple[str, str | None], Breaker] = {}
        self._connections: dict[str, Connection] = {}
        self._connecting: dict[str, asyncio.Lock] = {}
        self._uses: Tally[str] = Tally()  # of connections, by lanes
        self.dearest: dict[str, float] = {}  # highest cost of an attempt so far, by service
        self._first: dict[str, asyncio.Lock] = {}

    @property
    def most_task_bytes(self) -> int:
        """The most bytes that the open tasks of one lane may take."""
        return _MOST_TASK_BYTES // len(self.writers)

    def breaker(self, service: str, give_up_after_s: float, step: str | None = None) -> Breaker:
        if (service, step) not in self._breakers:
            self._breakers[service, step] = Breaker(give_up_after_s)
        return self._breakers[service, step]

    def first_of(self, service: str) -> asyncio.Lock:
        """The lock of the first attempt at a service, which shows what its attempts cost."""
        return self._first.setdefault(service, asyncio.Lock())

    def flush(self) -> None:
        """Write all answers to the ledger; any thread may call it."""
        for writer in list(self.writers):
            writer.flush()

    def joins(self, open_call: OpenCall, lane: "CallOwner") -> bool:
        """Return whether another lane makes the same call; `lane` then takes its outcome. If not, it makes the call.

        Rankings are left out: their tasks are named after their calls, so no two lanes have the same one.
        """
        call = open_call.call
        if call.key is None or call.depth is not None:
            return False
        first, joined = self._requests.setdefault(call.key, (open_call, []))
        if first is not open_call:
            joined.append((open_call, lane))
        return first is not open_call

    def ended(self, call: Call, outcome: Reply | CallError) -> None:
        """Deliver the outcome of a call to the lanes that joined it."""
        _, joined = self._requests.pop(call.key or "", (None, ()))
        for open_call, lane in joined:
            lane.take_outcome(open_call, outcome)

    async def connect(self, service: str) -> Connection:
        """The connection to a service, opened for the first lane; each `connect` needs one `disconnect`."""
        async with self._connecting.setdefault(service, asyncio.Lock()):
            if service not in self._connections:
                self._connections[service] = await self.stage.services[service].connect()
            self._uses[service] += 1
            return self._connections[service]

    async def disconnect(self, service: str) -> None:
        """End the use of a connection; the last lane closes it."""
        self._uses[service] -= 1
        if not self._uses[service]:
            await self._connections.pop(service).close()


class InFlight:
    """Runs calls concurrently. A call is paid for once it has begun, so an error in one does not cancel the others."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._calls: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    def begin(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._on_done)

    async def end(self) -> None:
        """Wait until all calls have ended; raises their first exception, if any."""
        while self._calls:
            await asyncio.wait(self._calls)
        if self._errors:
            raise self._errors[0]

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._calls.discard(task)
        error = asyncio.CancelledError("a call was cancelled") if task.cancelled() else task.exception()
        if error is not None:
            self._errors.append(error)
            self._stop()


class _Sum:
    """A `CallUsage` that grows."""

    def __init__(self) -> None:
        self.calls = self.shared = self.hits = 0
        self.tokens = NO_TOKENS
        self.durations: Tally[int] = Tally()

    def usage(self, position: int | None) -> CallUsage:
        return CallUsage(position, self.calls, self.shared, self.tokens, dict(self.durations), self.hits)


class CallSums:
    """Costs and durations of calls, by service and position."""

    def __init__(self) -> None:
        self._sums: defaultdict[tuple[str, int | None], _Sum] = defaultdict(_Sum)

    def add(self, service: str, positions: Collection[int], attempts: int, tokens: Tokens, hits: int = 0) -> None:
        """Add the attempts at a call, and their tokens; `hits` is 1 for an answer of the ledger."""
        for position in (None, *positions):
            total = self._sums[service, position]
            total.calls += attempts
            total.shared += attempts if position is not None and len(positions) > 1 else 0
            total.hits += hits
            if tokens is not NO_TOKENS:
                total.tokens += tokens

    def add_duration(self, service: str, positions: Collection[int], seconds: float) -> None:
        for position in (None, *positions):
            self._sums[service, position].durations[bin_of(seconds)] += 1

    def usages(self) -> list[tuple[str, CallUsage]]:
        return [(service, total.usage(position)) for (service, position), total in list(self._sums.items())]


class CallOwner(Protocol):
    """The lane that calls are made for."""

    number: int
    shared: FanOutContext
    writer: LedgerWriter
    tally: Counts  # of calls that lanes make, by service
    sums: CallSums
    in_flight: InFlight
    unexpected: UnexpectedErrors

    def answered(self, open_call: OpenCall, reply: Reply, outcomes: Sequence[Any], seconds: float) -> None:
        """Take the answer to a call, with the number and the tokens of all attempts."""

    def failed(self, open_call: OpenCall, error: CallError) -> None:
        """Take the final failure of a call."""

    def take_outcome(self, open_call: OpenCall, outcome: Reply | CallError) -> None:
        """Take the outcome of a call that another lane made."""
