"""The session that a lane has with its ledger: no answer is lost while it cannot be written, and new parts are used."""

import asyncio
import logging
import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.services import FAST, Echo, WorkerGone, feed, make, stage, task

from rankbeam.transforms.call import with_lost_attempts
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.ledger_session import LedgerSession, SessionHooks
from rankbeam.transforms.clients.ledger import LaneCounts, Ledger, LedgerEntry, Owner
from rankbeam.transforms.clients.ledger.leases.lease import Holder, Lease
from rankbeam.transforms.clients.ledger.leases.places import lease_place
from rankbeam.transforms.clients.ledger.survey import survey
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import CallAnswer, Usage
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError

TASKS = [task(f"q{i}") for i in range(500)]
ONE_AT_A_TIME = Quota(requests_per_minute=60_000, concurrent_calls=1)


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def fan_out_of(service: Echo, ledger: Ledger, questions: int, clock: VirtualClock, quota: Quota = FAST) -> FanOut:
    """A fan-out with one lane."""
    fan_out = FanOut(stage({"echo": service}, quota), ledger, clock)
    fan_out.begin(("pool",), 0, feed(TASKS[:questions]))
    return fan_out


def outcomes(fan_out: FanOut) -> list[object]:
    return [outcome for outcome in fan_out.outcomes() if outcome is not None]


class Disk:
    """A ledger whose folder can be taken away, from one moment to the next: then nothing can be written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._real, self._file = folder, folder.with_name("real"), folder.with_name("file")
        self._real.mkdir()
        self._file.write_text("a file in the way")
        self.give_back()

    def take_away(self) -> None:
        self._put(self._file)

    def give_back(self) -> None:
        self._put(self._real)

    def _put(self, target: Path) -> None:
        link = self.folder.with_name("next")
        link.symlink_to(target)
        link.replace(self.folder)


def test_what_cannot_be_written_for_a_while_is_kept_and_no_call_begins_meanwhile(
    clock: VirtualClock, tmp_path: Path
) -> None:
    disk, begun = Disk(tmp_path / "ledger"), []

    async def script(question: str, _: int) -> str | None:
        if question == "q10":
            disk.take_away()
            asyncio.get_running_loop().call_later(2.0, give_back)
        await asyncio.sleep(0.05)
        return None

    def give_back() -> None:
        begun.append(len(service.begun))
        disk.give_back()

    service = Echo(script)
    assert len(outcomes(fan_out_of(service, Ledger(str(disk.folder)), 60, clock, ONE_AT_A_TIME))) == 60
    assert begun[0] <= 22  # the first part that could not be written was half a second later
    again = Echo()
    make(TASKS[:60], again, disk.folder)
    assert not again.begun


def test_a_problem_shorter_than_the_patience_is_survived_whenever_it_begins(
    clock: VirtualClock, tmp_path: Path
) -> None:
    disk = Disk(tmp_path / "ledger")

    async def script(question: str, _: int) -> str | None:
        if question == "q80":  # after four seconds
            disk.take_away()
            asyncio.get_running_loop().call_later(3.0, disk.give_back)
        await asyncio.sleep(0.05)
        return None

    ledger = Ledger(str(disk.folder), patience_s=4.0)
    assert len(outcomes(fan_out_of(Echo(script), ledger, 120, clock, ONE_AT_A_TIME))) == 120


def test_what_cannot_be_written_for_long_ends_the_lane_and_says_what_is_lost(
    clock: VirtualClock, tmp_path: Path
) -> None:
    disk = Disk(tmp_path / "ledger")

    async def script(question: str, _: int) -> str | None:
        if question == "q10":
            disk.take_away()
        await asyncio.sleep(0.05)
        return None

    service, taken = Echo(script), []
    fan_out = fan_out_of(service, Ledger(str(disk.folder), patience_s=5.0), len(TASKS), clock, ONE_AT_A_TIME)
    with pytest.raises(InputError, match="cannot be written") as caught:
        taken.extend(outcome for outcome in fan_out.outcomes() if outcome is not None)
    disk.give_back()
    assert len(service.begun) <= 24
    assert 5.5 < clock.monotonic() < 7.5
    assert service.open == 0
    assert all(isinstance(outcome, CallAnswer) for outcome in taken)
    count = len(list(Ledger(str(disk.folder)).find({task.item.key: task.item.depth for task in TASKS})))
    assert f"{len(service.begun) - count} answers that were paid for could not be stored" in str(caught.value)


def test_what_cannot_be_written_after_the_last_call_is_tried_again(clock: VirtualClock, tmp_path: Path) -> None:
    disk = Disk(tmp_path / "ledger")

    async def script(question: str, _: int) -> str | None:
        if question == "q9":
            disk.take_away()
            asyncio.get_running_loop().call_later(2.0, disk.give_back)
        return None

    assert len(outcomes(fan_out_of(Echo(script), Ledger(str(disk.folder)), 10, clock, ONE_AT_A_TIME))) == 10
    assert 2.0 < clock.monotonic() < 2.6
    again = Echo()
    make(TASKS[:10], again, disk.folder)
    assert not again.begun


def test_without_patience_a_problem_ends_the_lane_at_once(clock: VirtualClock, tmp_path: Path) -> None:
    disk, taken_away = Disk(tmp_path / "ledger"), []

    async def script(question: str, _: int) -> str | None:
        if question == "q0":
            disk.take_away()
            taken_away.append(clock.monotonic())
        await asyncio.sleep(0.05)
        return None

    fan_out = fan_out_of(Echo(script), Ledger(str(disk.folder), patience_s=0.0), len(TASKS), clock, ONE_AT_A_TIME)
    with pytest.raises(InputError, match="cannot be written") as caught:
        outcomes(fan_out)
    assert caught.value.path == str(disk.folder)
    assert clock.monotonic() - taken_away[0] < 2.0


def test_what_another_run_answers_while_a_lane_waits_is_not_asked_again(clock: VirtualClock, tmp_path: Path) -> None:
    other, service = Ledger(str(tmp_path)), Echo()
    lease, writer = other.lease("quota pool pool, lane 0"), other.writer()
    assert lease.claim() is None
    fan_out = fan_out_of(service, Ledger(str(tmp_path)), 20, clock)
    for call in (planned.item for planned in TASKS[:15]):
        writer.add(LedgerEntry(call.key, call.depth, call.payload, 1, 0.1, datetime.now(UTC)))
    writer.close()
    assert not service.begun
    lease.release()
    assert len(outcomes(fan_out)) == 20
    assert sorted(question for question, _ in service.begun) == ["q15", "q16", "q17", "q18", "q19"]
    assert fan_out.totals()[Counter.LEDGER_HITS, "pool"] == 15


@dataclass
class Waiting:
    """A lane whose lease another run has, on a virtual clock: waiting takes no time."""

    folder: Path
    wait_s: float | None = None
    run: tuple[str, str] = ("there", "yesterday")
    left_after_looks: int = 99
    released_at: float = math.inf
    seconds: float = 0.0
    looks: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def lease(self, holder: Holder) -> Lease:
        return Lease(lease_place(str(self.folder)), "pool", holder, self)

    async def look(self) -> bool:
        self.looks.append(self.seconds)
        return len(self.looks) < self.left_after_looks

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        if self.seconds < self.released_at:
            self.other.beat()
        else:
            self.other.release()

    def enter(self) -> None:
        """Wait as a lane does, until it may make calls."""
        here = Holder.here("here", "now")
        self.other = self.lease(replace(here, run_id=self.run[0], run_started=self.run[1]))
        assert self.other.claim() is None
        ledger = Ledger(str(self.folder), Owner("here", "now", self.wait_s))
        record = ledger.record("pool", 0, lambda: LaneCounts(0, 0, 0))
        mine = self.lease(here)
        hooks = SessionHooks(self.look, lambda: None, self.sleep)
        ledger_session = LedgerSession(ledger, [mine], ledger.writer(), [record], hooks, lambda: self.seconds)

        async def wait() -> None:
            async with asyncio.timeout(60), ledger_session:
                """Make calls."""

        asyncio.run(wait())


def test_a_lane_that_waits_looks_new_parts_up_every_minute_until_all_is_answered(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, left_after_looks=3)
    waiting.enter()
    assert waiting.looks[:3] == [50.0, 100.0, 150.0]


def test_a_lease_that_is_released_is_taken_within_a_second(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    waiting = Waiting(tmp_path, left_after_looks=1, released_at=3.0)
    with caplog.at_level(logging.INFO):
        waiting.enter()
    assert (waiting.seconds, waiting.looks) == (3.0, [3.0])
    assert ["waiting for it" in record.message for record in caplog.records] == [True]


@pytest.mark.parametrize("wait_s", [0.0, 30.0])
def test_waiting_has_an_end(tmp_path: Path, wait_s: float) -> None:
    waiting = Waiting(tmp_path, wait_s, seconds=700.0)
    with pytest.raises(InputError, match=r"pool: run there \(host .*\) makes calls with the same ledger") as caught:
        waiting.enter()
    assert (waiting.seconds, caught.value.path) == (700.0 + wait_s, str(tmp_path))


def test_an_earlier_attempt_of_the_same_run_is_waited_for_all_the_same(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, 0.0, ("here", "now"), left_after_looks=1)
    waiting.enter()
    assert waiting.seconds == 50.0


def counted(fan_out: FanOut, ledger: Ledger) -> Usage:
    return with_lost_attempts(fan_out.usage(), ledger)[0]


def test_calls_of_an_attempt_that_was_lost_are_counted_and_are_no_hits(clock: VirtualClock, tmp_path: Path) -> None:
    owner = Owner("run", "now")

    async def script(question: str, times: int) -> str | None:
        if question == "q10" and times == 1:
            raise CallError(FailureKind.UNAVAILABLE, "later")
        if question == "q30":
            await asyncio.sleep(1)  # until another attempt at q10
        if question == "q40":
            raise WorkerGone
        return None

    make(TASKS[:5], Echo(), tmp_path, clock=clock)
    first, second = Echo(script), Echo()
    with pytest.raises(WorkerGone):
        outcomes(fan_out_of(first, Ledger(str(tmp_path), owner), 60, clock, ONE_AT_A_TIME))
    ledger = Ledger(str(tmp_path), owner)
    fan_out = fan_out_of(second, ledger, 60, clock)
    assert len(outcomes(fan_out)) == 60
    usage = counted(fan_out, ledger)
    assert (usage.calls, usage.ledger_hits) == (len(first.begun) + len(second.begun), 5)
    by_position = {item.position: item for item in usage.took}
    assert by_position.keys() == {None, 0}
    for item in by_position.values():  # of all configurations, and of the one that needs the calls
        assert item.calls == usage.calls
        assert sum(item.durations.values()) == 55
    assert {item.position: item.calls for item in usage.recalled} == dict.fromkeys((None, 0), 5)
    third, again = Ledger(str(tmp_path), Owner("run", "later")), Echo()
    fan_out = fan_out_of(again, third, 60, clock)
    assert len(outcomes(fan_out)) == 60
    usage = counted(fan_out, third)
    assert (usage.calls, usage.ledger_hits, again.begun) == (0, 60, [])
    assert {item.position: item.calls for item in usage.recalled} == dict.fromkeys((None, 0), 60 + 1)
    shown, _ = survey(str(tmp_path)).runs  # the latest first
    assert (shown.calls, shown.hits) == (len(first.begun) + len(second.begun), 5 + 60)


def test_failed_calls_of_an_attempt_that_was_lost_answered_nothing(clock: VirtualClock, tmp_path: Path) -> None:
    async def script(question: str, _: int) -> str | None:
        if question == "q20":
            raise WorkerGone
        raise CallError(FailureKind.MALFORMED, "no JSON")

    make(TASKS[:15], Echo(), tmp_path, clock=clock)
    with pytest.raises(WorkerGone):
        outcomes(fan_out_of(Echo(script), Ledger(str(tmp_path), Owner("run", "now")), 60, clock, ONE_AT_A_TIME))
    ledger = Ledger(str(tmp_path), Owner("run", "now"))
    fan_out = fan_out_of(Echo(), ledger, 60, clock)
    assert len(outcomes(fan_out)) == 60
    usage = counted(fan_out, ledger)
    assert usage.calls > 45
    assert {item.position: item.calls for item in usage.recalled} == dict.fromkeys((None, 0), 15)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """A folder that everybody may read."""
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name) / "ledger"
        folder.mkdir()
        for path in (folder, folder.parent):
            path.chmod(0o555)
        yield folder
        folder.parent.chmod(0o700)


def test_a_folder_that_may_only_be_read_is_found_before_the_first_call(read_only: Path) -> None:
    if os.geteuid() != 0:
        with pytest.raises(InputError, match="Permission denied; free disk space or grant write access: no call"):
            make(TASKS[:1], Echo(), read_only)
        return
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:  # root may write everywhere
        try:
            os.setuid(65534)
            Ledger(str(read_only)).probe()
        except InputError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as output:
        assert b"Permission denied; free disk space or grant write access: no call was made" in output.read()
