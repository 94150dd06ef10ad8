"""A lane: calls of one quota pool, made side by side at the lane's share of the pace.

ledger? ─► lease ─► turn ─► one attempt ─► read ─► ledger ─► emit
  │ hit               ▲          │ transient failure: a pause, as the service asks for or longer each time
  └─► emit            └──────────┘
"""

import asyncio
import contextlib
import logging
import random
import time
from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    stop_before_delay,
)

from rankbeam.transforms.clients.calls.in_flight import InFlight
from rankbeam.transforms.clients.calls.services import Connection, Service
from rankbeam.transforms.clients.calls.todo import Todo
from rankbeam.transforms.clients.calls.turns import Stopped, Turns
from rankbeam.transforms.clients.calls.upkeep import Upkeep
from rankbeam.transforms.clients.ledger import Counted, Entry, Ledger
from rankbeam.transforms.records.calls.call import Answer, Call, FailedCall, Request, merged
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import Failure, FailureKind

Outcome = Answer | FailedCall
Emit = Callable[[Outcome], None]

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_HOPELESS = 20  # calls that failed, with none that succeeded, after which a service is not asked any more
_SAME_MALFORMED = 3  # answers that are wrong in one way, after which a call is not tried again
_LOOK_AGAIN_S = 0.1
_WAITING_PER_SLOT = 4  # calls that pause before another attempt, for each that may be in the air
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lane:
    """What one lane has to do.

    Attributes:
        pool: the quota pool.
        quota: of the whole pool.
        number: of the lane, from 0.
        calls: to be answered.
        stage: that asks, such as "retrieve".
        account: whose budget the quota is, by a name that all experiments have for it; the pool's by default.
    """

    pool: str
    quota: Quota
    number: int
    calls: Sequence[Call]
    stage: str
    account: str = ""


class LaneRun:
    """One lane at work, on the loop.

    Args:
        lane: what it has to do.
        services: that calls name by position.
        ledger: where answers are looked up and kept.
        emit: takes an outcome; called on the loop.
        emit_found: takes one that the ledger had, and may wait; called in a thread.

    Attributes:
        tally: what was counted so far; only ever grows.
    """

    def __init__(
        self, lane: Lane, services: Mapping[int, Service], ledger: Ledger, emit: Emit, emit_found: Emit
    ) -> None:
        self._lane, self._services, self._ledger = lane, services, ledger
        self._emit, self._emit_found = emit, emit_found
        self._quota = lane.quota
        self._search = ledger.search()
        self._todo: Todo[Outcome] = Todo([], self._search, self._read)
        self._record_of_use = ledger.record(lane.pool, lane.number, self._counted)
        self._writer = ledger.writer(self._record_of_use.write)
        self._turns = Turns(lane.quota, lane.number, is_held=lambda: self._writer.problem is not None)
        self._open = asyncio.Semaphore(lane.quota.slots(lane.number) * (1 + _WAITING_PER_SLOT))
        self._next = asyncio.Semaphore(1)
        self._connections: dict[int, Connection] = {}
        self._health = {service: _Health() for service in services}
        self.tally = Tally(dict.fromkeys(Counter, 0))  # all keys, so that another thread can read it meanwhile

    @property
    def waited_s(self) -> float:
        """How long there was work that had to wait for its turn."""
        return self._turns.waited_s

    async def run(self) -> None:
        """Answer all calls, from the ledger or the service.

        Raises:
            InputError: the services or the ledger cannot be used.
        """
        self._todo = Todo(merged(self._lane.calls), self._search, self._read)
        self.tally[Counter.CALLS_PLANNED] += len(self._todo)
        await asyncio.to_thread(self._from_ledger)
        if not self._todo:
            await asyncio.to_thread(self._record_of_use.write)
            return
        async with self._upkeep():
            try:
                for service in self._todo.services():
                    self._connections[service] = await self._services[service].connect()
                await self._make()
            finally:
                for connection in self._connections.values():
                    await connection.close()

    def stop(self) -> None:
        """Begin no further call; those in the air may end. Called on the loop."""
        self._turns.stop()

    def flush(self) -> None:
        """Bring what has been answered into the ledger; from any thread."""
        self._writer.flush()

    def warnings(self) -> list[str]:
        """What users should know of the ledger."""
        return self._search.warnings()

    def record_name(self) -> str:
        """Names the record of how the lane uses the ledger."""
        return self._record_of_use.name

    def _upkeep(self) -> Upkeep:
        lease = self._ledger.lease(f"quota pool {self._lane.account or self._lane.pool}, lane {self._lane.number}")
        return Upkeep(
            self._ledger, lease, self._writer, self._record_of_use, self._look_again, self.stop, self._turns.pause
        )

    def _counted(self) -> Counted:
        return Counted(self.tally[Counter.LEDGER_HITS], self.tally[Counter.CALLS_MADE], self._writer.added)

    def _from_ledger(self) -> None:
        """Answer what the ledger can; the others stay to be done, in their order."""
        for outcomes in self._todo.answered():
            self.tally[Counter.LEDGER_HITS] += 1
            for outcome in outcomes:
                self._emit_found(outcome)
        for warning in self._search.warnings():
            _logger.warning("%s", warning)

    async def _look_again(self) -> bool:
        """Answer what other calls have brought into the ledger meanwhile; returns whether something is left to do."""
        for outcomes in await self._todo.answered_meanwhile():
            self.tally[Counter.LEDGER_HITS] += 1
            for outcome in outcomes:
                self._emit(outcome)
        return len(self._todo) > 0

    async def _make(self) -> None:
        in_flight = InFlight(self._turns.stop)
        try:
            with contextlib.suppress(Stopped):
                await self._begin(in_flight)
        finally:
            await in_flight.end()
        self._turns.refuse_when_stopped()

    async def _begin(self, in_flight: InFlight) -> None:
        for request in self._todo.to_begin():
            await self._open.acquire()
            await self._next.acquire()  # one new call at a time waits for its turn, beside those that are tried again
            self._turns.refuse_when_stopped()
            health = self._health[request.service]
            while health.is_suspect and health.asking:  # answers may be slower than refusals
                await self._turns.pause(_LOOK_AGAIN_S)
            if health.is_suspect:
                self._open.release()
                self._next.release()
                self._fail(request, health.hopeless())
            else:
                health.asking += 1
                in_flight.begin(self._ask(request))

    async def _ask(self, request: Request) -> None:
        """Ask until there is an answer, or no hope of one."""
        retrying = AsyncRetrying(
            retry=retry_if_exception(_MayPass()),
            wait=_pause_s,
            stop=stop_after_attempt(self._quota.attempts) | stop_before_delay(self._quota.give_up_after_s),
            sleep=self._turns.pause,
            reraise=True,
        )
        statistics = retrying.statistics
        try:
            await retrying(self._attempt, request, statistics)
        except CallError as error:
            self._health[request.service].failed(error)
            attempts = int(statistics["attempt_number"])
            self._fail(request, CallError(error.kind, error.message, attempts))
        except Stopped:
            self._next.release()  # the next one will see it too
        finally:
            self._health[request.service].asking -= 1
            self._open.release()

    async def _attempt(self, request: Request, statistics: Mapping[str, float]) -> None:
        """Take a turn and make the call at once: nothing else must run in between, or calls arrive in heaps."""
        await self._turns.take()
        attempts = int(statistics["attempt_number"])
        if attempts == 1:
            self._next.release()
        else:
            self.tally[Counter.RETRIES] += 1
        answer, seconds = await self._call(request)
        outcomes = self._read(request, answer, attempts)
        self._record(request, answer, attempts, seconds)
        self._health[request.service].answered()
        self.tally[Counter.CALLS_DONE] += 1
        self.tally[Counter.CALLS_FAILED] += any(isinstance(outcome, FailedCall) for outcome in outcomes)
        for outcome in outcomes:
            self._emit(outcome)

    async def _call(self, request: Request) -> tuple[str, float]:
        """The answer to one attempt, and the seconds it took; the turn that was taken is given back."""
        self.tally[Counter.CALLS_MADE] += 1
        began, timeout_s = time.monotonic(), self._quota.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                reply = await self._connections[request.service].call(request.call.payload, timeout_s, 1)
        except TimeoutError as error:
            raise CallError(FailureKind.TIMEOUT, f"no answer within {timeout_s:g} s") from error
        except CallError as error:
            if error.kind is FailureKind.QUOTA:
                self._turns.push_back()
            raise
        finally:
            self._turns.give_back()
        return reply.answer, time.monotonic() - began

    def _record(self, request: Request, answer: str, attempts: int, seconds: float) -> None:
        call = request.call
        self._writer.add(Entry(call.key, call.reach, answer, attempts, seconds, datetime.now(UTC)))

    def _read(self, request: Request, answer: str, attempts: int = 0) -> list[Outcome]:
        """What an answer says to everyone who asked.

        Raises:
            CallError: it says nothing to anybody, for the service said something else than it should.
        """
        outcomes: list[Outcome] = []
        malformed: list[CallError] = []
        for call in request.calls:
            try:
                outcomes.append(Answer(call.service, call.askers, self._services[call.service].read(answer)))
            except CallError as error:
                malformed += [error] if error.kind.is_transient else []
                outcomes += self._failures(call, CallError(error.kind, error.message, attempts))
        if len(malformed) == len(request.calls):
            raise malformed[0]
        return outcomes

    def _fail(self, request: Request, error: CallError) -> None:
        self.tally[Counter.CALLS_DONE] += 1
        self.tally[Counter.CALLS_FAILED] += 1
        for call in request.calls:
            for failed in self._failures(call, error):
                self._emit(failed)

    def _failures(self, call: Call, error: CallError) -> list[FailedCall]:
        stage = self._lane.stage
        return [
            FailedCall(call.service, bucket, Failure(stage, error.kind, query_id, error.attempts, error.message))
            for bucket, query_id in call.askers
        ]


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


class _MayPass:
    """Whether a call may succeed that failed: not when it got the same malformed answer several times."""

    def __init__(self) -> None:
        self._malformed: Tally[str] = Tally()

    def __call__(self, error: BaseException) -> bool:
        if not isinstance(error, CallError):
            return False
        if error.kind is FailureKind.MALFORMED:
            self._malformed[error.message] += 1
        return error.kind.is_transient and self._malformed[error.message] < _SAME_MALFORMED


def _pause_s(state: RetryCallState) -> float:
    """The pause before another attempt: longer each time, and never shorter than the service asks for."""
    error = state.outcome.exception() if state.outcome is not None else None
    asked_s = (error.retry_after_s or 0.0) if isinstance(error, CallError) else 0.0
    longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** (state.attempt_number - 1))
    jitter = random.uniform(0.5, 1.0)  # noqa: S311  it spreads attempts, and decides no result
    return max(longest_s * jitter, asked_s * (1 + 0.1 * jitter))
