"""Leases: at most one holder, whatever is claimed, lost, killed or late, and on every kind of filesystem."""

import dataclasses
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import memory_filesystem, strict_gcs
from support.strategies import lists_up_to

from rankbeam.transforms.clients.ledger.leases.lease import Holder, Lease, LeaseLost, LeasePlace, ReadFile
from rankbeam.transforms.clients.ledger.leases.places import ElsewherePlace, GcsPlace, LocalPlace
from rankbeam.transforms.clients.ledger.leases.process import start_time
from rankbeam.transforms.records.errors import InputError

HERE = Holder.here("here", "now")
THERE = dataclasses.replace(HERE, run_id="there", host="other", machine="another machine")


@dataclass
class Time:
    """A clock that only tests move."""

    seconds: float = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class MemoryPlace:
    """Files that keep to the Protocol by a dict."""

    files: dict[str, bytes] = field(default_factory=dict)
    is_full: bool = False

    def read(self, name: str) -> ReadFile | None:
        return None if name not in self.files else ReadFile(self.files[name], self.files[name])

    def create(self, name: str, content: bytes) -> bool:
        self._write()
        return self.files.setdefault(name, content) is content

    def replace(self, name: str, content: bytes, seen: ReadFile) -> bool:
        self._write()
        if self.read(name) != seen:
            return False
        self.files[name] = content
        return True

    def delete(self, name: str, seen: ReadFile) -> None:
        if self.read(name) == seen:
            del self.files[name]

    def _write(self) -> None:
        if self.is_full:
            raise InputError("No space left on device")


@pytest.fixture(params=["local", "gcs", "elsewhere"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LeasePlace]:
    if request.param == "local":
        yield LocalPlace(str(tmp_path / "ledger" / "leases"))
    elif request.param == "gcs":
        with strict_gcs.serve() as connect:
            yield GcsPlace(f"gs://bucket/{uuid.uuid4().hex}/leases", connect)
    else:
        time = Time()
        yield ElsewherePlace("mem://bucket/leases", time.monotonic, time.sleep)
        memory_filesystem.FILES.clear()


def lease(place: LeasePlace, time: Time, me: Holder = THERE) -> Lease:
    return Lease(place, "pool, lane 0", me, time)


def test_one_holds_it_until_it_is_released(place: LeasePlace) -> None:
    time = Time()
    first, second = lease(place, time), lease(place, time, HERE)
    assert first.claim() is None
    holder = second.claim()
    assert holder is not None
    assert (holder.run_id, holder.since) == ("there", "2026-01-01T00:00:00+00:00")
    assert str(holder) == f"run there (host other, process {HERE.pid}, since 2026-01-01T00:00:00 UTC)"
    first.release()
    first.release()
    assert second.claim() is None
    assert first.claim() is not None


def test_of_several_at_once_one_gets_it(place: LeasePlace) -> None:
    if isinstance(place, ElsewherePlace):
        pytest.skip("best effort there: claims take time to be seen")
    ready, won = threading.Barrier(8), []

    def claim() -> None:
        mine = lease(place, Time())
        ready.wait()
        if mine.claim() is None:
            won.append(mine)

    for _ in range(5):
        won.clear()
        threads = [threading.Thread(target=claim) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        won[0].release()


def test_a_heartbeat_keeps_it_and_silence_loses_it(place: LeasePlace) -> None:
    time = Time()
    first, second = lease(place, time), lease(place, time, HERE)
    assert first.claim() is None
    for _ in range(12):
        time.seconds += 30
        first.beat()
        assert second.claim() is not None
    time.seconds += 59
    assert second.claim() is not None
    time.seconds += 2
    assert second.claim() is None
    with pytest.raises(LeaseLost, match="taken over by run here"):
        first.beat()
    first.release()
    assert lease(place, time).claim() is not None  # which the loser has left alone


def test_one_that_was_left_behind_long_ago_is_taken_over_at_once(place: LeasePlace) -> None:
    time = Time()
    assert lease(place, time).claim() is None
    time.seconds += 13 * 3600
    assert lease(place, time, HERE).claim() is None


@pytest.mark.parametrize("jump_s", [-7200, 7200])
def test_a_clock_that_jumps_takes_no_lease_from_a_holder_at_work(place: LeasePlace, jump_s: float) -> None:
    time = Time()
    first = lease(place, time)
    jumped = SimpleNamespace(monotonic=time.monotonic, now=lambda: time.now() + timedelta(seconds=jump_s))
    second = Lease(place, "pool, lane 0", HERE, jumped)
    assert first.claim() is None
    for _ in range(12):
        assert second.claim() is not None
        time.seconds += 11
        first.beat()


def test_a_process_of_this_machine_that_is_gone_is_taken_over_at_once(place: LeasePlace) -> None:
    time = Time()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        since = start_time(child.pid)
        assert since is not None
        owner = lease(place, time, dataclasses.replace(HERE, pid=child.pid, pid_started=since))
        assert owner.claim() is None
        time.seconds += 3600  # it may be stopped, and go on
        assert lease(place, time, HERE).claim() is not None
        child.kill()
        while start_time(child.pid) == since:
            """Until it is a zombie, which nobody has waited for."""
        assert lease(place, time, HERE).claim() is None


def test_a_process_with_the_same_number_that_was_started_later_is_another_one(place: LeasePlace) -> None:
    assert lease(place, Time(), dataclasses.replace(HERE, pid_started="long ago")).claim() is None
    assert lease(place, Time(), HERE).claim() is None


def test_only_one_takes_over_what_is_left_behind(tmp_path: Path) -> None:
    place = LocalPlace(str(tmp_path / "leases"))
    gone = dataclasses.replace(HERE, pid_started="long ago")
    for _ in range(10):
        assert lease(place, Time(), gone).claim() is None
        ready, won = threading.Barrier(8), []

        def claim(ready: threading.Barrier = ready, won: list[Lease] = won) -> None:
            mine = lease(place, Time(), HERE)
            ready.wait()
            if mine.claim() is None:
                won.append(mine)

        threads = [threading.Thread(target=claim) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        won[0].release()


def test_a_file_that_was_never_finished_expires(tmp_path: Path) -> None:
    time = Time()
    place = LocalPlace(str(tmp_path))
    first = lease(place, time)
    first.claim()
    (file,) = tmp_path.glob("lease-*")
    file.write_bytes(b"")
    second = lease(place, time, HERE)
    assert "cannot be read" in str(second.claim())
    time.seconds += 61
    assert second.claim() is None


def test_a_full_disk_loses_the_lease_only_when_others_might_take_it() -> None:
    time, place = Time(), MemoryPlace()
    owner = lease(place, time)
    assert owner.claim() is None
    place.is_full = True
    time.seconds += 45
    owner.beat()
    place.is_full = False
    time.seconds += 1
    owner.beat()
    place.is_full = True
    time.seconds += 51
    with pytest.raises(LeaseLost, match="No space left"):
        owner.beat()


def test_a_claim_that_was_left_behind_by_a_killed_process_is_passed_over() -> None:
    time = Time()
    place = ElsewherePlace("mem://bucket/leases", time.monotonic, time.sleep)
    mine = lease(place, time)
    name = mine._file
    memory_filesystem.FILES[f"mem://bucket/leases/{name}.claim-{'0' * 32}"] = b""
    assert mine.claim() is None
    assert time.seconds >= 60
    memory_filesystem.FILES.clear()


STEPS = lists_up_to(
    60, st.tuples(st.sampled_from(["claim", "claim", "beat", "release", "die", "wait"]), st.integers(0, 2))
)


@given(steps=STEPS)
def test_nobody_works_with_a_lease_that_another_one_has(steps: list[tuple[str, int]]) -> None:
    """Who has a lease and renews it in time is the only one who thinks so."""
    time, place = Time(), MemoryPlace()
    contenders = [lease(place, time, dataclasses.replace(THERE, machine=f"machine {n}")) for n in range(3)]
    renewed: dict[int, float] = {}
    for step, number in steps:
        contender = contenders[number]
        if step == "claim" and number not in renewed:
            if contender.claim() is None:
                fresh = [other for other, at in renewed.items() if time.seconds - at < 60]
                assert fresh == []
                renewed[number] = time.seconds
        elif step == "beat" and number in renewed:
            try:
                contender.beat()
                if time.seconds - renewed[number] >= 10:
                    renewed[number] = time.seconds
            except LeaseLost:
                del renewed[number]
        elif step == "release":
            contender.release()
            renewed.pop(number, None)
        elif step == "die":
            contenders[number] = lease(place, time, dataclasses.replace(THERE, machine=f"machine {number}"))
            renewed.pop(number, None)
        else:
            time.seconds += 7.0 * (number + 1)
