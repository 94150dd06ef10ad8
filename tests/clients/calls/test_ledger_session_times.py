"""Look-ups, heartbeats and use records of a ledger session, on the virtual clock."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rankbeam.transforms.clients.calls.ledger_session import LedgerSession, SessionHooks
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.leases.lease import Holder
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.errors import InputError


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


@dataclass
class LaneRecords:
    """A lease and a record that note when they are used; another run holds the lease for some time."""

    clock: VirtualClock
    name: str = "pool"
    held_s: float = 0.0
    beats: list[float] = field(default_factory=list)
    written: list[float] = field(default_factory=list)
    events: list[str] = field(default_factory=list)

    def claim(self) -> Holder | None:
        self.events.append(f"claim {self.name}")
        return Holder.here("other", "now") if self.clock.monotonic() < self.held_s else None

    def beat(self) -> None:
        self.beats.append(round(self.clock.monotonic(), 3))

    def release(self) -> None:
        self.events.append(f"release {self.name}")

    def write(self, *, at_once: bool = False) -> None:
        self.written.append(round(self.clock.monotonic(), 3))
        self.events += ["written at once"] if at_once else []


@dataclass
class Run:
    """A session with one or more leases."""

    clock: VirtualClock
    folder: Path
    records: list[Any]
    is_due: bool = False
    cancelled_at: float | None = None
    left_after_looks: int = 99
    looks: list[float] = field(default_factory=list)
    stops: list[float] = field(default_factory=list)

    async def look(self) -> bool:
        self.looks.append(round(self.clock.monotonic(), 3))
        return len(self.looks) < self.left_after_looks

    def last(self, seconds: float) -> None:
        ledger = Ledger(str(self.folder))
        writer = ledger.writer(clock=self.clock)
        stop = lambda: self.stops.append(round(self.clock.monotonic(), 3))  # noqa: E731  it is one line
        due = [lambda: True] if self.is_due else []
        hooks = SessionHooks(self.look, stop, asyncio.sleep, *due)
        ledger_session = LedgerSession(ledger, self.records, writer, self.records[:1], hooks, self.clock.monotonic)

        async def calls() -> None:
            if self.cancelled_at is not None:
                asyncio.get_running_loop().call_later(self.cancelled_at, ledger.request_stop)
            async with ledger_session:
                await asyncio.sleep(seconds)

        asyncio.run_coroutine_threadsafe(calls(), self.clock.loop()).result(60)


def test_notes_are_taken_every_five_seconds_and_at_the_end(clock: VirtualClock, tmp_path: Path) -> None:
    records = LaneRecords(clock)
    Run(clock, tmp_path, [records]).last(12.1)
    assert records.written == [5.0, 10.0, 12.1]
    assert records.events == ["claim pool", "written at once", "release pool"]


def test_a_lease_is_renewed_at_every_look_four_times_a_second(clock: VirtualClock, tmp_path: Path) -> None:
    records = LaneRecords(clock)
    Run(clock, tmp_path, [records]).last(1.1)
    assert records.beats == [0.25, 0.5, 0.75, 1.0]


def test_answers_of_others_are_looked_up_every_fifty_seconds(clock: VirtualClock, tmp_path: Path) -> None:
    run = Run(clock, tmp_path, [LaneRecords(clock)])
    run.last(101.0)
    assert run.looks == [0.0, 50.0, 100.0]


def test_where_a_look_is_due_it_is_after_two_seconds(clock: VirtualClock, tmp_path: Path) -> None:
    run = Run(clock, tmp_path, [LaneRecords(clock)], is_due=True)
    run.last(5.0)
    assert run.looks == [0.0, 2.0, 4.0]


def test_leases_are_claimed_by_name_and_kept_while_another_is_waited_for(clock: VirtualClock, tmp_path: Path) -> None:
    first, second = LaneRecords(clock, "a"), LaneRecords(clock, "b", held_s=2.5)
    run = Run(clock, tmp_path, [second, first])
    run.last(0.1)
    assert first.events[0] == "claim a"
    assert second.events[:4] == ["claim b"] * 4
    assert (first.beats, run.looks) == ([1.0, 2.0, 3.0], [3.0])
    assert (first.events[-1], second.events[-1]) == ("release a", "release b")


@pytest.mark.parametrize(("cancelled_at", "stopped_at"), [(0.1, 1.0), (1.1, 2.0)])
def test_a_run_that_is_cancelled_stops_within_a_second(
    cancelled_at: float, stopped_at: float, clock: VirtualClock, tmp_path: Path
) -> None:
    run = Run(clock, tmp_path, [LaneRecords(clock)], cancelled_at=cancelled_at)
    with pytest.raises(InputError, match="the run was cancelled") as caught:
        run.last(3.0)
    assert (run.stops, caught.value.path) == ([stopped_at], str(tmp_path))


def test_a_run_that_is_cancelled_while_it_waits_for_another_one_ends_within_a_second(
    clock: VirtualClock, tmp_path: Path
) -> None:
    records = LaneRecords(clock, held_s=600.0)
    with pytest.raises(InputError, match="the run was cancelled"):
        Run(clock, tmp_path, [records], cancelled_at=2.5).last(0.1)
    assert 2.5 <= clock.monotonic() < 3.5
    assert records.events[-1] == "release pool"


class SlowRecords(LaneRecords):
    """A lease whose renewal takes half a second."""

    def beat(self) -> None:
        with (changed := self.clock.condition()):
            changed.wait(0.5)
        self.events.append("renewed")


def test_a_lease_is_released_after_its_last_renewal(clock: VirtualClock, tmp_path: Path) -> None:
    records = SlowRecords(clock)
    Run(clock, tmp_path, [records]).last(0.3)
    assert records.events == ["claim pool", "renewed", "written at once", "release pool"]


def test_where_another_run_has_answered_everything_no_further_lease_is_claimed(
    clock: VirtualClock, tmp_path: Path
) -> None:
    first, second = LaneRecords(clock, "a", held_s=600.0), LaneRecords(clock, "b")
    run = Run(clock, tmp_path, [first, second], left_after_looks=1)
    run.last(0.1)
    assert run.looks[0] == 50.0
    assert second.events == ["release b"]
