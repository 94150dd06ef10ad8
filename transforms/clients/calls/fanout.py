"""The fan-out: lanes of calls, begun by a DoFn, at work on the loop of its process.

Whoever begins lanes takes their outcomes in a thread of its own, as they come; all lanes are at work meanwhile, so
that several of them in one bundle each keep their pace.
"""

import asyncio
import queue
import time
import weakref
from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, wait

from rankbeam.transforms.clients.calls.lanes import Lane, LaneRun, Outcome
from rankbeam.transforms.clients.calls.loop import running_loop
from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.calls.turns import Stopped
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.records.counters import Counter, Counts

_TICK_S = 0.25
_MOST_WAITING = 1000  # answers of the ledger, which come faster than anybody takes them

_started: "weakref.WeakSet[FanOut]" = weakref.WeakSet()


class FanOut:
    """Makes the calls of lanes.

    Args:
        services: that calls name by position.
        ledger: where answers are looked up and kept.
    """

    def __init__(self, services: Mapping[int, Service], ledger: Ledger) -> None:
        self._services, self._ledger = services, ledger
        self._outcomes: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self._runs: list[tuple[Lane, LaneRun]] = []
        self._ends: list[Future[None]] = []
        self._told: Counts = Tally()
        self._leaving = False
        _started.add(self)

    @property
    def ended(self) -> bool:
        """Whether all lanes that were begun have ended."""
        return all(end.done() for end in self._ends)

    def begin(self, lane: Lane) -> None:
        """Begin to make the calls of a lane; returns at once."""
        self._ends.append(asyncio.run_coroutine_threadsafe(self._run(lane), running_loop()))
        self._ends[-1].add_done_callback(lambda _: self._outcomes.put(None))

    async def _run(self, lane: Lane) -> None:
        run = LaneRun(lane, self._services, self._ledger, self._outcomes.put, self._put_when_there_is_room)
        self._runs.append((lane, run))
        if self._leaving:
            run.stop()
        await run.run()

    def outcomes(self) -> Iterator[Outcome | None]:
        """Every outcome of all lanes that were begun, as they come; None now and then, so that one can look around.

        Raises:
            InputError: the services or the ledger cannot be used; nothing that was answered is lost.
        """
        try:
            while not self.ended:
                try:
                    yield self._outcomes.get(timeout=_TICK_S)
                except queue.Empty:
                    yield None
                if self._has_failed():
                    self._begin_no_more()
            while not self._outcomes.empty():
                yield self._outcomes.get()
        finally:  # whoever took the outcomes may have failed
            self._begin_no_more()
        for end in sorted(self._ends, key=lambda end: isinstance(end.exception(), Stopped)):
            end.result()  # what went wrong first, and not that others stopped for it

    def counted(self) -> Counts:
        """What was counted since this was last asked."""
        total = self.totals()
        new = total - self._told  # what is zero drops out
        self._told = total
        return new

    def totals(self) -> Counts:
        """What was counted since the beginning."""
        total: Counts = Tally()
        for lane, run in self._runs:
            total.update({(counter, lane.pool): number for counter, number in run.tally.items()})
            total[Counter.THROTTLED_S, lane.pool] += int(run.waited_s)
        return total

    def warnings(self) -> list[str]:
        """What users should know of the ledger, each once."""
        return list(dict.fromkeys(warning for _, run in self._runs for warning in run.warnings()))

    def records(self, pool: str) -> tuple[str, ...]:
        """The names of the records of how a pool's lanes used the ledger."""
        return tuple(run.record_name() for lane, run in self._runs if lane.pool == pool)

    def stop(self, grace_s: float) -> None:
        """Begin no further call, give those in the air some time to end, and bring all answers into the ledger.

        Raises:
            InputError: the ledger cannot be written.
        """
        _stop([self], grace_s)

    def _has_failed(self) -> bool:
        return any(end.done() and end.exception() is not None for end in self._ends)

    def _begin_no_more(self) -> None:
        self._leaving = True
        for _, run in self._runs:
            running_loop().call_soon_threadsafe(run.stop)

    def _put_when_there_is_room(self, outcome: Outcome) -> None:
        while self._outcomes.qsize() > _MOST_WAITING and not self._leaving:
            time.sleep(0.01)
        self._outcomes.put(outcome)


def at_work() -> "list[FanOut]":
    """The fan-outs of this process that still have something to do."""
    return [each for each in list(_started) if not each.ended]


def stop_all(grace_s: float) -> None:
    """Stop every fan-out of this process; see `FanOut.stop`."""
    _stop(at_work(), grace_s)


def _stop(fan_outs: "list[FanOut]", grace_s: float) -> None:
    for each in fan_outs:
        each._begin_no_more()
    wait([end for each in fan_outs for end in each._ends], timeout=grace_s)
    for _, run in [run for each in fan_outs for run in each._runs]:
        run.flush()
