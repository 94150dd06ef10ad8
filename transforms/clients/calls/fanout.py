"""The fan-out: lanes of tasks, begun by a DoFn, running on the event loop of its process.

The thread that begins lanes reads their tasks while there is room, and takes their outcomes as they arrive. All lanes
run meanwhile, so several lanes in one bundle each keep their pace.
"""

import asyncio
import weakref
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rankbeam.transforms.clients.calls.admission import LaneStopped
from rankbeam.transforms.clients.calls.driver import Outcome
from rankbeam.transforms.clients.calls.feed import Feed
from rankbeam.transforms.clients.calls.lane_context import FanOutContext
from rankbeam.transforms.clients.calls.lanes import LaneRun
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

_TICK_S = 0.25
_MOST_READY_BYTES = 8 << 20  # of tasks that were read; lanes have equal shares
_started: "weakref.WeakSet[FanOut]" = weakref.WeakSet()


class FanOut:
    """Drives the tasks of lanes."""

    def __init__(self, stage: Stage, ledger: Ledger, clock: Clock = SYSTEM_CLOCK) -> None:
        self._stage, self._clock = stage, clock
        self._shared = FanOutContext(stage, ledger, clock, self._wake_all)
        self._outcomes = self._shared.outcomes
        self._runs: list[LaneRun] = []
        self._ends: list[Future[None]] = []
        self._counted: Counts = Tally()
        self._is_stopping = False
        _started.add(self)

    @property
    def ended(self) -> bool:
        return all(end.done() for end in self._ends)

    def begin(self, pools: Pools, number: int, feed: Feed) -> None:
        """Begin a lane; returns at once. `outcomes` reads its tasks once all lanes have their shares of the budget."""
        self._shared.budget.limit += self._stage.budget_of_lane(pools)
        self._runs.append(run := LaneRun(pools, number, feed, self._shared))
        if self._is_stopping:
            self._clock.loop().call_soon_threadsafe(run.stop)
        self._ends.append(asyncio.run_coroutine_threadsafe(run.run(), self._clock.loop()))
        self._ends[-1].add_done_callback(lambda _: self._outcomes.put(None))

    def outcomes(self) -> Iterator[Outcome | RecalledTasks | None]:
        """Read the tasks of all lanes that were begun, and yield every outcome as it arrives."""
        with self._clock.at_work():
            try:
                self._look_up()
                while not self.ended:
                    has_read = not self._outcomes.is_full and self._read_tasks()
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
        for run in self._runs:
            for (counter, service), number in run.counts().items():
                total[counter, self._stage.pools[service]] += number
            total[Counter.CALLS_PLANNED, run.pools[0]] += run.feed.left
            for pool, seconds in run.waited_s.items():
                total[Counter.THROTTLED_S, pool] += int(seconds)
        return total

    def usage(self) -> list[Usage]:
        totals: dict[tuple[str, str], Tally[Counter]] = {}
        for run in self._runs:
            for (counter, service), number in run.counts().items():
                totals.setdefault(self._pool_and_model(service), Tally())[counter] += number
        usages = self._by_pool_and_model(run.sums.usages() for run in self._runs)
        recalled = self._by_pool_and_model(run.recalled_usages() for run in self._runs)
        return [
            Usage(
                pool,
                total[Counter.CALLS_MADE],
                total[Counter.LEDGER_HITS],
                tuple(run.records[pool].name for run in self._runs if pool in run.pools),
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
        for run in self._runs:
            refused[run.pools] += run.refused
        texts = [warning for run in self._runs for warning in run.warnings()]
        return list(dict.fromkeys([*texts, *(over_budget(pools, number) for pools, number in (+refused).items())]))

    def _look_up(self) -> None:
        """Look up the answers that can be recalled, before the first task is read."""
        with suppress(InputError):  # the lanes report it
            self._shared.lookup.refresh()
            for run in self._runs:
                run.feed.look_up(self._shared.lookup)

    def _next_recalled(self) -> RecalledTasks | None:
        """Answers in the ledger that have not been read yet; None if there are none."""
        for run in self._runs if not self._is_stopping else ():
            if (recalled := run.feed.read_recalled()) is not None:
                self._wake(run)
                return recalled
        return None

    def _read_tasks(self) -> bool:
        """Read some tasks of each lane that has room for them; returns whether any lane has news."""
        filled = [run for run in self._runs if run.feed.fill(_MOST_READY_BYTES // len(self._runs))]
        for run in filled:
            self._wake(run)
        return bool(filled)

    def _pool_and_model(self, service: str) -> tuple[str, str]:
        return self._stage.pools[service], self._stage.model(service) or ""

    def _has_failed(self) -> bool:
        return any(end.done() and end.exception() is not None for end in self._ends)

    def _begin_no_more(self) -> None:
        self._is_stopping = True
        for run in self._runs:
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

    def _wake(self, run: LaneRun) -> None:
        self._clock.loop().call_soon_threadsafe(run.wake)

    def _wake_all(self) -> None:
        for run in self._runs:
            self._wake(run)


def at_work() -> "list[FanOut]":
    return [fan_out for fan_out in list(_started) if not fan_out.ended]


def stop_all(grace_s: float) -> None:
    """Begin no further call in this process, give calls in flight some time to end, and write all answers."""
    for fan_out in list(_started):  # those whose lanes have not begun, too
        fan_out._is_stopping = True
    fan_outs = at_work()
    for fan_out in fan_outs:
        fan_out._begin_no_more()
    for fan_out in fan_outs:
        fan_out._wait_until_ended(grace_s if fan_out is fan_outs[0] else 0.0)
    for fan_out in fan_outs:
        fan_out._shared.flush()


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
            fan_out.begin((pool,), 0, Feed(rows_in(batches_of(tasks)), len(tasks)))
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
