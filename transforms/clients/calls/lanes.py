"""A lane: a stream of tasks, and their calls, made at the lane's share of the pace of its pools.

feed ─► driver ─► in the ledger? ─┬─ hit ──► read, some at a time ─┬─► driver ─► next step, or outcome
          ▲                       └─ miss ─► calls of its pool ────┤
          └────────────────────────────────────────────────────────┘
"""

import asyncio
import logging
from collections import Counter as Tally
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from rankbeam.transforms.clients.calls.admission import LaneStopped
from rankbeam.transforms.clients.calls.driver import Driver, OpenCall
from rankbeam.transforms.clients.calls.feed import Feed
from rankbeam.transforms.clients.calls.hits import Hits, Parking
from rankbeam.transforms.clients.calls.lane_context import CallSums, FanOutContext, InFlight
from rankbeam.transforms.clients.calls.ledger_session import LedgerSession, SessionHooks
from rankbeam.transforms.clients.calls.pool_calls import PoolCalls
from rankbeam.transforms.clients.calls.stage import Pools
from rankbeam.transforms.clients.calls.unexpected_errors import UnexpectedErrors
from rankbeam.transforms.clients.ledger import LaneCounts, LedgerEntry
from rankbeam.transforms.records.calls.steps import PAUSE, CallUsage
from rankbeam.transforms.records.counters import Counter, Counts
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.reply import Reply

_HITS_AT_ONCE = 50_000  # many at once: neighbours in the ledger's files are read together
_logger = logging.getLogger(__name__)


class LaneRun:
    """One running lane, on the event loop."""

    def __init__(self, pools: Pools, number: int, feed: Feed, shared: FanOutContext) -> None:
        stage, ledger, clock = shared.stage, shared.ledger, shared.clock
        self.pools, self.number, self.feed, self.shared = pools, number, feed, shared
        services = stage.services_of(pools)
        self.tally: Counts = Tally(dict.fromkeys(((counter, name) for counter in Counter for name in services), 0))
        self.sums, self._recalled_sums, self._stored_sums = CallSums(), CallSums(), CallSums()
        self.records = {pool: ledger.record(pool, number, partial(self._lane_counts, pool), clock) for pool in pools}
        self.writer = ledger.writer(self._write_records, clock)
        shared.writers.append(self.writer)
        self._hits = Hits(shared)
        self.in_flight = InFlight(self.stop)
        self._driver = Driver(stage.name, stage.works, self._ask, shared.outcomes.put)
        self.unexpected = UnexpectedErrors(ledger.keep_log)
        self._parking = None if stage.batch is None else Parking(stage.batch, stage.name, services)
        self._pools = {
            pool: PoolCalls(quota, stage.services_of([pool]), self) for pool, quota in stage.in_lanes(pools).items()
        }
        self._news = asyncio.Event()
        self._has_missed = asyncio.Event()
        self._has_room, self._is_stopped = True, False

    def counts(self) -> Counts:
        """Counts of all calls, including those of tasks that need not be taken; by service."""
        tally = self.tally.copy()
        for service, number in self.feed.recall.counted.items():
            tally[Counter.CALLS_PLANNED, service] += number
            tally[Counter.LEDGER_HITS, service] += number
        return tally

    @property
    def refused(self) -> int:
        """Number of calls that were not made because of their cost."""
        return sum(pool.refused for pool in self._pools.values())

    def recalled_usages(self) -> list[tuple[str, CallUsage]]:
        """Usage, when they were made, of the calls that the ledger answered; by service and position."""
        return [*self._recalled_sums.usages(), *self.feed.recall.sums.usages()]

    @property
    def waited_s(self) -> dict[str, float]:
        """For each pool, how long at least one attempt waited for the pace."""
        return {name: pool.admission.waited_s for name, pool in self._pools.items()}

    async def run(self) -> None:
        """Run all tasks of the feed until they have outcomes; raises `LaneStopped` if the lane was stopped before."""
        await self._hits.refresh()
        if self._parking is not None:
            await asyncio.to_thread(self._parking.load)
        self.in_flight.begin(self._start_tasks())
        self.in_flight.begin(self._read_all_hits())
        try:
            await self._has_missed.wait()  # or until the end
            if not self._is_over():
                await self._make_calls()
        except BaseException:
            self.stop()
            raise
        finally:
            await self.in_flight.end()
            if self._parking is not None:
                await asyncio.to_thread(self._parking.flush)
            await asyncio.to_thread(self._write_records)
        if self._is_stopped and not self._is_over():
            raise LaneStopped

    def stop(self) -> None:
        """Begin no further call; calls in flight may end. Called on the loop."""
        self._is_stopped = True
        for pool in self._pools.values():
            pool.stop()
        self.wake()
        self._has_missed.set()

    def wake(self) -> None:
        """Wake the lane when there are tasks to take, or room for outcomes. Called on the loop."""
        self._news.set()

    def warnings(self) -> list[str]:
        pool_warnings = (warning for pool in self._pools.values() for warning in pool.warnings())
        return [
            *self.shared.lookup.warnings(),
            *self.feed.recall.warnings.values(),
            *pool_warnings,
            *self.unexpected.warnings(),
        ]

    async def _make_calls(self) -> None:
        ledger, number, clock = self.shared.ledger, self.number, self.shared.clock
        accounts = [self.shared.stage.accounts.get(pool) or pool for pool in self.pools]
        leases = [ledger.lease(f"quota pool {name}, lane {number}", clock) for name in accounts]
        pause = next(iter(self._pools.values())).admission.pause
        records = list(self.records.values())
        hooks = SessionHooks(self._look_again, self.stop, pause, self._hits.has_many)
        async with LedgerSession(ledger, leases, self.writer, records, hooks, clock.monotonic):
            try:
                for name, pool in self._pools.items():
                    pool.ask_last(await asyncio.to_thread(ledger.tried_keys, name, number))
                    self.in_flight.begin(pool.begin_all())
                await self.in_flight.end()
            finally:
                for name, pool in self._pools.items():
                    await pool.disconnect()
                    if (keys := pool.to_ask_last()) is not None:
                        await asyncio.to_thread(ledger.keep_tried, name, number, keys)

    async def _start_tasks(self) -> None:
        """Start tasks as long as there is room for them, until all have an outcome."""
        outcomes = self.shared.outcomes

        def has_room(share: float = 1.0) -> bool:
            return self._driver.expected_bytes < self.shared.most_task_bytes * share

        while not self._is_over() and not self._is_stopped:
            for service, number in self.feed.recall.counted.items():
                if number:
                    self._pools[self.shared.stage.pools[service]].answered_before(service)
            self._has_room = has_room(1.0 if self._has_room else 0.75)
            groups = self.feed.take(has_room) if self._has_room and not outcomes.is_full else ()
            started = sum(self._driver.start(group, size) for group, size in groups)
            if started and not self.feed.is_read:
                outcomes.put(None)  # there is room for further tasks
            if started or not self._has_room:
                self.wake()  # it may now be worth reading hits, and nothing else may wake their reader
            await (asyncio.sleep(0) if started else self._wait_for_news())  # calls begin meanwhile
        for warning in self.shared.lookup.warnings():
            _logger.warning("%s", warning)
        for pool in self._pools.values():
            pool.close()
        self._has_missed.set()

    async def _read_all_hits(self) -> None:
        while not self._is_over() and not self._is_stopped:
            is_worth_it = self.feed.has_ended or not self._has_room or len(self._hits) >= _HITS_AT_ONCE
            await (self._read_hits() if self._hits and is_worth_it else self._wait_for_news())

    async def _wait_for_news(self) -> None:
        if not self._is_over() and not self._is_stopped:
            self._news.clear()
            await self._news.wait()

    def _is_over(self) -> bool:
        return self.feed.has_ended and not self._driver.open

    def _ask(self, open_call: OpenCall) -> None:
        """Take a call that no other task has requested so far."""
        if open_call.call.service == PAUSE:
            self.in_flight.begin(self._pause(open_call))
            return
        self.tally[Counter.CALLS_PLANNED, open_call.call.service] += 1
        if self._hits.take(open_call):
            self._news.set()
        else:
            self._call(open_call)

    def _call(self, open_call: OpenCall) -> None:
        refusal = None if self._parking is None else self._parking.refusal(open_call.call, open_call.positions())
        if refusal is not None:
            self._driver.settle(open_call, [refusal] * len(open_call.requested_by))
            self._news.set()
            return
        if self.shared.joins(open_call, self):
            return
        self._pools[self.shared.stage.pools[open_call.call.service]].add(open_call)
        self._has_missed.set()

    def take_outcome(self, open_call: OpenCall, outcome: Reply | CallError) -> None:
        if isinstance(outcome, CallError):
            self.failed(open_call, outcome)
            return
        self._recalled(open_call, outcome)
        self._driver.settle(open_call, open_call.read(outcome), outcome)
        self._news.set()

    async def _pause(self, open_call: OpenCall) -> None:
        admission = next(iter(self._pools.values())).admission
        with suppress(LaneStopped):
            await admission.pause(float(open_call.call.payload))
            self._driver.settle(open_call, [None] * len(open_call.requested_by))
            self._news.set()

    async def _read_hits(self) -> None:
        calls = self._hits.give()
        async for reads in self._hits.read(calls):
            for open_call, reply, outcomes in reads:
                service = open_call.call.service
                self._recalled(open_call, reply)
                self._pools[self.shared.stage.pools[service]].answered_before(service)
                del calls[open_call.call.key or ""]
                outcomes += open_call.read(reply, skip=len(outcomes))  # for tasks that requested it meanwhile
                self._driver.settle(open_call, outcomes, reply)
                self.shared.ended(open_call.call, reply)
            self._news.set()
            while self.shared.outcomes.is_full and not self._is_stopped and not self._is_over():
                await self._wait_for_news()
        for open_call in calls.values():
            self._call(open_call)  # no task can read it any more: make the call

    def _recalled(self, open_call: OpenCall, reply: Reply) -> None:
        service = open_call.call.service
        self.tally[Counter.LEDGER_HITS, service] += 1
        self._recalled_sums.add(service, open_call.positions(), reply.attempts, reply.tokens, hits=1)

    async def _look_again(self) -> bool:
        """Look up answers of other runs; returns whether calls are left to make."""
        await self._hits.refresh()
        for pool in self._pools.values():
            for open_call in list(pool.waiting):
                if self._hits.take(open_call):
                    pool.remove(open_call)
        await self._read_hits()
        return not self._is_over()

    def answered(self, open_call: OpenCall, reply: Reply, outcomes: Sequence[Any], seconds: float) -> None:
        call = open_call.call
        if call.key is not None:
            self._stored_sums.add(call.service, open_call.positions(), reply.attempts, reply.tokens, hits=1)
            further = (reply.attempts, seconds, self.shared.clock.now(), reply.tokens, call.service)
            self.writer.add(LedgerEntry(call.key, call.depth, reply.answer, *further))
            self.shared.added[call.key] = call.depth
        self._driver.settle(open_call, outcomes, reply)
        self.shared.ended(call, reply)
        self._news.set()

    def failed(self, open_call: OpenCall, error: CallError) -> None:
        self._driver.settle(open_call, [error] * len(open_call.requested_by))
        self.shared.ended(open_call.call, error)
        self._news.set()

    def _write_records(self) -> None:
        for record in self.records.values():
            record.write()
        self.unexpected.write()

    def _lane_counts(self, pool: str) -> LaneCounts:
        stage, tally = self.shared.stage, self.counts()
        services = stage.services_of([pool])
        counters = (Counter.LEDGER_HITS, Counter.CALLS_MADE, Counter.CALLS_PLANNED)
        hits, calls, planned = (sum(tally[counter, name] for name in services) for counter in counters)
        planned += self.feed.left if pool == next(iter(self._pools)) else 0
        usages, stored = (
            tuple((stage.name, stage.model(name) or "", usage) for name, usage in sums.usages() if name in services)
            for sums in (self.sums, self._stored_sums)
        )
        answered = sum(usage.hits for *_, usage in stored if usage.position is None)
        return LaneCounts(hits, calls, answered, usages, planned, stage.name, stored)
