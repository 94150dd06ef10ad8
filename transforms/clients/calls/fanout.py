"""The fan-out: lanes of tasks, begun by a DoFn, running on the event loop of its process.

The thread that begins lanes reads their tasks while there is room, and takes their outcomes as they arrive. All lanes
run meanwhile, so several lanes in one bundle each keep their pace.
"""

import asyncio
import weakref
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rankbeam.transforms.clients.calls.admission import LaneStopped
from rankbeam.transforms.clients.calls.driver import Outcome
from rankbeam.transforms.clients.calls.feed import Feed
from rankbeam.transforms.clients.calls.lane_context import SharedServices
from rankbeam.transforms.clients.calls.lanes import FanOutContext, Lane, LaneRun
from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.calls.stage import Pools, Stage
from rankbeam.transforms.clients.calls.task_batches import batches_of, rows_in
from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import (
    CallAnswer,
    CallUsage,
    FailedTask,
    RecalledTasks,
    Subject,
    Task,
    Usage,
    Work,
    over_budget,
    sum_by_position,
)
from rankbeam.transforms.records.counters import Counter, Counts
from rankbeam.transforms.records.errors import CallError, InputError
from rankbeam.transforms.records.reply import Tokens

_MOST, _MOST_BYTES = 1000, 16 << 20  # outcomes above which the queue is full


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
        """True while too many outcomes wait for their reader."""
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


_TICK_S = 0.25
_MOST_READY_BYTES, _MOST_HELD_BYTES = 8 << 20, 64 << 20
"""Bytes of tasks that were read, and of started tasks without an outcome; lanes have equal shares."""

_started: "weakref.WeakSet[FanOut]" = weakref.WeakSet()


class FanOut:
    """Drives the tasks of lanes."""

    def __init__(self, stage: Stage, ledger: Ledger, clock: Clock = SYSTEM_CLOCK) -> None:
        self._stage, self._ledger, self._clock = stage, ledger, clock
        self._lookup, self._shared = ledger.lookup(), SharedServices(stage.services)
        self._outcomes = OutcomeQueue(clock, self._wake)
        self._context = FanOutContext(stage, ledger, self._lookup, self._shared, self._outcomes.put, self, clock)
        self._feeds: list[Feed] = []
        self._runs: list[tuple[Lane, LaneRun]] = []
        self._ends: list[Future[None]] = []
        self._counted: Counts = Tally()
        self._is_stopping = False
        _started.add(self)

    @property
    def ended(self) -> bool:
        return all(end.done() for end in self._ends)

    def begin(self, lane: Lane, feed: Feed) -> None:
        """Begin a lane; returns at once. `outcomes` reads its tasks once all lanes have their shares of the budget."""
        self._shared.budget.limit += self._stage.budget_of_lane(lane.pools)
        self._feeds.append(feed)
        self._ends.append(asyncio.run_coroutine_threadsafe(self._run_lane(lane, feed), self._clock.loop()))
        self._ends[-1].add_done_callback(lambda _: self._outcomes.put(None))

    async def _run_lane(self, lane: Lane, feed: Feed) -> None:
        run = LaneRun(lane, feed, self._context)
        self._runs.append((lane, run))
        wake = partial(asyncio.get_running_loop().call_soon_threadsafe, run.wake)
        feed.connect(on_filled=wake, on_taken=partial(self._outcomes.put, None))
        if self._is_stopping:
            run.stop()
        await run.run()

    def outcomes(self) -> Iterator[Outcome | RecalledTasks | None]:
        """Read the tasks of all lanes that were begun, and yield every outcome as it arrives."""
        with self._clock.at_work():
            try:
                self._look_up()
                while not self.ended:
                    has_read = not self.is_full() and self._read_tasks()
                    if not self._outcomes and (recalled := self._next_recalled()) is not None:
                        yield recalled
                        continue
                    yield self._outcomes.get(0.0 if has_read else _TICK_S)
                    if self._has_failed():
                        self._begin_no_more()
                while self._outcomes:
                    yield self._outcomes.get()
            finally:  # the caller may have failed
                self._begin_no_more()
        for end in sorted(self._ends, key=lambda end: isinstance(end.exception(), LaneStopped)):
            end.result()  # raises the first error, rather than the `LaneStopped` of lanes that it stopped

    def counted(self) -> Counts:
        """The counts since the last call of this method."""
        total = self.totals()
        new = Tally(total)
        new.subtract(self._counted)
        self._counted = total
        return Tally({key: number for key, number in new.items() if number})

    def totals(self) -> Counts:
        total: Counts = Tally()
        for lane, run in self._runs:
            for (counter, service), number in run.tally.items():
                total[counter, self._stage.pools[service]] += number
            total[Counter.CALLS_PLANNED, lane.pools[0]] += run.feed.left
            for pool, seconds in run.waited_s.items():
                total[Counter.THROTTLED_S, pool] += int(seconds)
        return total

    def usage(self) -> list[Usage]:
        totals: dict[tuple[str, str], Tally[Counter]] = {}
        for _, run in self._runs:
            for (counter, service), number in run.tally.items():
                totals.setdefault(self._pool_and_model(service), Tally())[counter] += number
        usages = self._by_pool_and_model(run.sums.usages() for _, run in self._runs)
        recalled = self._by_pool_and_model(run.recalled_usages() for _, run in self._runs)
        return [
            Usage(
                pool,
                total[Counter.CALLS_MADE],
                total[Counter.LEDGER_HITS],
                tuple(run.records[pool].name for lane, run in self._runs if pool in lane.pools),
                self._stage.name,
                model or None,
                Tokens(total[Counter.INPUT_TOKENS], total[Counter.CACHED_TOKENS], total[Counter.OUTPUT_TOKENS]),
                sum_by_position(usages.get((pool, model), ())),
                sum_by_position(recalled.get((pool, model), ())),
            )
            for (pool, model), total in sorted(totals.items())
        ]

    def _by_pool_and_model(
        self, usages: Iterable[Iterable[tuple[str, CallUsage]]]
    ) -> Mapping[tuple[str, str], Sequence[CallUsage]]:
        return grouped((self._pool_and_model(name), usage) for part in usages for name, usage in part)

    def warnings(self) -> list[str]:
        refused: Tally[Pools] = Tally()
        for lane, run in self._runs:
            refused[lane.pools] += run.refused
        texts = [warning for _, run in self._runs for warning in run.warnings()]
        return list(dict.fromkeys([*texts, *(over_budget(pools, number) for pools, number in (+refused).items())]))

    def stop(self, grace_s: float) -> None:
        """Begin no further call, give calls in flight some time to end, and write all answers to the ledger."""
        _stop([self], grace_s)

    def _look_up(self) -> None:
        """Look up the answers that can be recalled, before the first task is read."""
        with suppress(InputError):  # the lanes report it
            self._lookup.refresh()
            for feed in self._feeds:
                feed.look_up(self._lookup)

    def _next_recalled(self) -> RecalledTasks | None:
        """Answers in the ledger that have not been read yet; None if there are none."""
        feeds = self._feeds if not self._is_stopping else ()
        return next((recalled for feed in feeds if (recalled := feed.read_recalled()) is not None), None)

    def _read_tasks(self) -> bool:
        """Read some tasks of each lane that has room for them; returns whether any were read."""
        most = _MOST_READY_BYTES // len(self._feeds)
        return sum(feed.fill(most) for feed in self._feeds) > 0

    def most_held(self) -> int:
        return _MOST_HELD_BYTES // len(self._feeds)

    def _pool_and_model(self, service: str) -> tuple[str, str]:
        return self._stage.pools[service], self._stage.model(service) or ""

    def is_full(self) -> bool:
        """True while too many outcomes wait; meanwhile, neither tasks nor ledger answers are read."""
        return self._outcomes.is_full and not self._is_stopping

    def _has_failed(self) -> bool:
        return any(end.done() and end.exception() is not None for end in self._ends)

    def _begin_no_more(self) -> None:
        self._is_stopping = True
        for _, run in self._runs:
            self._clock.loop().call_soon_threadsafe(run.stop)

    def _wait_until_ended(self, timeout_s: float) -> None:
        changed = self._clock.condition()

        def notify(_: Future[None]) -> None:
            with changed:
                changed.notify_all()

        for end in self._ends:
            end.add_done_callback(notify)
        with changed:
            changed.wait_for(lambda: self.ended, timeout_s)

    def _wake(self) -> None:
        for _, run in self._runs:
            self._clock.loop().call_soon_threadsafe(run.wake)


def at_work() -> "list[FanOut]":
    return [fan_out for fan_out in list(_started) if not fan_out.ended]


def stop_all(grace_s: float) -> None:
    """Stop every fan-out of this process; see `FanOut.stop`."""
    _stop(at_work(), grace_s)


def _stop(fan_outs: Sequence["FanOut"], grace_s: float) -> None:
    for running in fan_outs:
        running._begin_no_more()
    for fan_out in fan_outs:
        fan_out._wait_until_ended(grace_s if fan_out is fan_outs[0] else 0.0)
    for _, run in [run for fan_out in fan_outs for run in fan_out._runs]:
        run.flush()


@dataclass
class SingleService:
    """One service that a process calls outside a pipeline."""

    service: Service
    account: str
    quota: Quota
    ledger: Ledger
    clock: Clock = SYSTEM_CLOCK
    usage: list[Usage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def done(self, work: Work[Any], items: Sequence[Any]) -> list[Any]:
        name, (pool,) = work.stage, work.services
        tasks = [
            Task(f"{number}", name, item, (Subject(name, f"{number}", 0, ()),)) for number, item in enumerate(items)
        ]
        stage = Stage(name, {name: work}, {pool: self.service}, {pool: pool}, {pool: self.quota}, {pool: self.account})
        fan_out = FanOut(stage, self.ledger, self.clock)
        if tasks:
            fan_out.begin(Lane((pool,), 0), Feed(rows_in(batches_of(tasks)), len(tasks)))
        values: list[Any] = [None] * len(tasks)
        for outcome in fan_out.outcomes():
            if isinstance(outcome, CallAnswer):
                values[int(outcome.name)] = outcome.value
            elif isinstance(outcome, FailedTask):
                failure = outcome.failure
                values[int(failure.query_id)] = CallError(failure.kind, failure.message, failure.attempts)
        self.usage += fan_out.usage()
        self.warnings += fan_out.warnings()
        return values

    def one(self, work: Work[Any], item: Any) -> Any:
        (value,) = self.done(work, [item])
        if isinstance(value, CallError):
            raise value
        return value
