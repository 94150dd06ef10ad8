"""Lanes: what they share with each other, with other runs and with the run after them, and how they stop."""

import asyncio
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support.services import FAST, Ask, Echo, WorkerGone, failing, feed, make, run_all, stage, taking, task

from rankbeam.transforms.clients.calls import fanout
from rankbeam.transforms.clients.calls.admission import LaneStopped
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry, Owner
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import CallAnswer, FailedTask, Task
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import FailureKind, InputError

QUOTA = Quota(requests_per_minute=6000)
ONE_A_SECOND = Quota(requests_per_minute=60, concurrent_calls=1)


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def fan_out_of(tasks: list[Task], service: Echo, ledger: Ledger, clock: VirtualClock, quota: Quota = FAST) -> FanOut:
    """A fan-out with one lane."""
    fan_out = FanOut(stage({"echo": service}, quota), ledger, clock)
    fan_out.begin(("pool",), 0, feed(tasks))
    return fan_out


def write(tasks: list[Task], folder: Path) -> None:
    """Answers of another run."""
    writer = Ledger(str(folder)).writer()
    for call in (planned.item for planned in tasks):
        writer.add(LedgerEntry(call.key, call.depth, call.payload, 1, 0.1, datetime.now(UTC)))
    writer.close()


def asking(question: str, name: str) -> Task:
    """A task whose call is whole, as those of models are."""
    one = task(question, name)
    return one._replace(name=name, item=replace(one.item, depth=None))


def lanes(number: int, tasks: int, questions: int) -> list[list[Task]]:
    """Tasks dealt to lanes, in which the same questions come again and again."""
    every = [asking(f"q{place * 7 % questions}", f"t{place}") for place in range(tasks)]
    return [every[lane::number] for lane in range(number)]


@pytest.mark.parametrize("latency_s", [0.0, 0.5, 30.0])
@pytest.mark.parametrize("number", [2, 4])
def test_equal_calls_in_several_lanes_are_made_once(latency_s: float, number: int, tmp_path: Path) -> None:
    service = Echo(taking(latency_s))
    outcomes, fan_out = run_all({"echo": service}, lanes(number, 600, 45), tmp_path, QUOTA)
    assert Tally(question for question, _ in service.begun) == {f"q{place}": 1 for place in range(45)}
    assert [type(outcome) for outcome in outcomes] == [CallAnswer] * 600
    totals = fan_out.totals()
    assert totals[Counter.CALLS_MADE, "pool"] == 45
    assert totals[Counter.LEDGER_HITS, "pool"] == totals[Counter.CALLS_PLANNED, "pool"] - 45


def test_a_call_that_fails_fails_in_every_lane_that_wants_it(tmp_path: Path) -> None:
    service = Echo(failing(FailureKind.INVALID, times=99))
    outcomes, _ = run_all({"echo": service}, [[asking("q", "a")], [asking("q", "b")]], tmp_path, QUOTA)
    assert [type(outcome) for outcome in outcomes] == [FailedTask] * 2
    assert len(service.begun) == 1


def test_a_killed_run_pays_for_no_call_again_that_its_lanes_shared(tmp_path: Path) -> None:
    async def script(_: str, __: int) -> str | None:
        if len(service.begun) == 30:
            raise WorkerGone
        return None

    service = Echo(script)
    with pytest.raises(WorkerGone):
        run_all({"echo": service}, lanes(4, 300, 45), tmp_path, replace(QUOTA, concurrent_calls=4))
    answered = len(service.begun)
    service.script = None
    outcomes, _ = run_all({"echo": service}, lanes(4, 300, 45), tmp_path, QUOTA)
    assert len(outcomes) == 300
    assert len(service.begun) - answered <= 45 - 30 + 4
    assert max(Tally(question for question, _ in service.begun[:answered]).values()) == 1


def test_a_stored_answer_that_one_of_two_tasks_can_read_is_not_paid_again(tmp_path: Path) -> None:
    def refuse(_: Any) -> None:
        raise ValueError

    services = {"echo": Echo(), "strict": Echo(reader=refuse)}
    tasks = [task("q", "a"), task("q", "b")._replace(name="b", work="strict")]
    write(tasks[:1], tmp_path)
    outcomes, _ = run_all(services, [tasks], tmp_path, QUOTA)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["CallAnswer", "FailedTask"]
    assert not services["echo"].begun


def test_an_error_before_the_first_call_ends_the_run(clock: VirtualClock, tmp_path: Path) -> None:
    class Broken(Ask):
        def steps(self, item: Any) -> Any:
            raise InputError(f"no call for {item.payload}")

    service = Echo()
    broken = replace(stage({"echo": service}), works={"echo": Broken("echo", service)})
    fan_out = FanOut(broken, Ledger(str(tmp_path)), clock)
    fan_out.begin(("pool",), 0, feed([task("q")]))
    with pytest.raises(InputError, match="no call for"):
        list(islice(fan_out.outcomes(), 100))


def test_a_run_whose_answers_are_all_in_the_ledger_waits_for_no_other_run(clock: VirtualClock, tmp_path: Path) -> None:
    tasks = [task(f"q{number}") for number in range(20)]
    write(tasks, tmp_path)
    assert Ledger(str(tmp_path)).lease("quota pool pool, lane 0").claim() is None  # another run makes calls
    service = Echo()
    ledger = Ledger(str(tmp_path), Owner("r", "now", wait_s=0.0))
    assert len([one for one in fan_out_of(tasks, service, ledger, clock).outcomes() if one is not None]) == 20
    assert not service.begun


def test_what_another_run_answers_in_the_meantime_is_used_within_a_minute(clock: VirtualClock, tmp_path: Path) -> None:
    tasks = [task(f"q{number}") for number in range(100)]

    async def script(question: str, _: int) -> str | None:
        if question == "q5":
            await asyncio.to_thread(write, tasks[60:], tmp_path)
        return None

    service = Echo(script)
    make(tasks, service, tmp_path, ONE_A_SECOND, clock)
    assert len(service.begun) == 60


def test_calls_that_failed_while_a_service_was_given_up_are_the_last_of_the_next_run(
    clock: VirtualClock, tmp_path: Path
) -> None:
    tasks = [task(f"q{number}") for number in range(50)]
    down, up = Echo(failing(FailureKind.PERMISSION, times=99)), Echo()
    make(tasks, down, tmp_path, ONE_A_SECOND, clock)
    make(tasks, up, tmp_path, ONE_A_SECOND, clock)
    failed = [question for question, _ in down.begun]
    assert len(failed) == 20
    assert [question for question, _ in up.begun][-20:] == failed


def test_stopping_without_grace_writes_all_answers_and_lets_a_last_call_end(
    clock: VirtualClock, tmp_path: Path
) -> None:
    begun = []  # time passes until the first task is read

    async def script(question: str, _: int) -> str | None:
        begun.append(clock.monotonic())
        await asyncio.sleep(30.0 if question == "slow" else 0.0)
        return None

    tasks = [task("slow"), *(task(f"q{number}") for number in range(10))]
    fan_out = fan_out_of(tasks, Echo(script), Ledger(str(tmp_path)), clock)
    outcomes = (outcome for outcome in fan_out.outcomes() if outcome is not None)
    assert len([next(outcomes) for _ in range(10)]) == 10
    fanout.stop_all(grace_s=0.0)
    assert clock.monotonic() - begun[0] < 0.2  # the interval at which answers are written
    calls = {task.item.key: task.item.depth for task in tasks}
    assert len(list(Ledger(str(tmp_path)).find(calls))) == 10
    assert [type(outcome) for outcome in outcomes] == [CallAnswer]  # and no error: nothing is left to call
    assert len(list(Ledger(str(tmp_path)).find(calls))) == 11


def test_the_plan_has_the_calls_of_tasks_that_are_not_read_yet(clock: VirtualClock, tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path), Owner("run", "now"))
    fan_out = fan_out_of([task(f"q{number}") for number in range(20)], Echo(), ledger, clock)
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), clock.loop()).result()  # the lane has begun
    assert fan_out.totals()[Counter.CALLS_PLANNED, "pool"] == 20
    fanout.stop_all(grace_s=60.0)
    with pytest.raises(LaneStopped):
        list(fan_out.outcomes())
    (use,) = ledger.uses()
    assert (use.planned, use.calls) == (20, 0)


def test_the_journal_has_the_number_of_calls_in_flight(clock: VirtualClock, tmp_path: Path) -> None:
    seen: set[tuple[int, int]] = set()

    async def script(_: str, __: int) -> str | None:
        await asyncio.sleep(0.05)
        seen.add((sum(int(path.read_bytes()[:8]) for path in tmp_path.glob("_journal-*")), service.open))
        return None

    service = Echo(script)
    make([task(f"q{number}") for number in range(9)], service, tmp_path, replace(FAST, concurrent_calls=3), clock)
    assert (3, 3) in seen
    assert all(counted == in_flight for counted, in_flight in seen)
