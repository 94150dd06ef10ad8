"""The virtual clock: what waits ends in the order of its times, at those times, and in no time."""

import asyncio
import random
import threading
import time
from collections.abc import Iterator

import pytest

from rankbeam.transforms.clients.virtual_clock import VirtualClock

HOUR_S = 3600.0


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def run(clock: VirtualClock, coroutine: object) -> object:
    return asyncio.run_coroutine_threadsafe(coroutine, clock.loop()).result(60)  # type: ignore[arg-type]


def test_sleeps_and_timeouts_end_at_their_times(clock: VirtualClock) -> None:
    ended: list[tuple[str, float]] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)
        ended.append(("slept", clock.monotonic()))

    async def hang() -> None:
        try:
            async with asyncio.timeout(2 * HOUR_S):
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append(("timed out", clock.monotonic()))

    async def all_of_them() -> None:
        await asyncio.gather(sleep(3 * HOUR_S), hang(), sleep(HOUR_S))

    run(clock, all_of_them())
    assert ended == [("slept", HOUR_S), ("timed out", 2 * HOUR_S), ("slept", 3 * HOUR_S)]
    assert (clock.now().hour, clock.monotonic()) == (3, 3 * HOUR_S)


def test_time_stands_still_while_a_thread_of_the_loop_is_at_work(clock: VirtualClock) -> None:
    gate = threading.Event()
    seen: list[float] = []

    async def work() -> None:
        await asyncio.to_thread(gate.wait, 60)
        seen.append(clock.monotonic())

    async def meanwhile() -> None:
        working = asyncio.create_task(work())
        asyncio.get_running_loop().call_later(HOUR_S, seen.append, -1.0)
        await asyncio.sleep(0)
        threading.Thread(target=gate.set).start()
        await working
        await asyncio.sleep(2 * HOUR_S)

    run(clock, meanwhile())
    assert seen == [0.0, -1.0]


def test_threads_that_wait_for_a_condition_wait_on_the_clock(clock: VirtualClock) -> None:
    condition, seen = clock.condition(), []

    def wait() -> None:
        with condition:
            for timeout_s in (10.0, 20.0):
                was_notified = condition.wait(timeout_s)
                seen.append((was_notified, clock.monotonic()))

    async def notify() -> None:
        await asyncio.sleep(15)
        with condition:
            condition.notify_all()

    with clock.at_work():
        thread = clock.start(wait, "waits")
        notified = asyncio.run_coroutine_threadsafe(notify(), clock.loop())
    notified.result(60)
    thread.join(60)
    assert seen == [(False, 10.0), (True, 15.0)]


def test_a_thread_that_is_notified_is_at_work_before_the_system_lets_it_run(clock: VirtualClock) -> None:
    """Time must not pass between a notification and what it leads to, however busy the machine is."""
    condition, seen = clock.condition(), []
    rounds = 200

    def wait() -> None:
        for _ in range(rounds):
            with condition:
                condition.wait()
                seen.append(clock.monotonic())

    async def notify() -> None:
        for _ in range(rounds):
            await asyncio.sleep(1)
            with condition:
                condition.notify_all()

    with clock.at_work():
        thread = clock.start(wait, "waits")
        notified = asyncio.run_coroutine_threadsafe(notify(), clock.loop())
    notified.result(60)
    thread.join(60)
    assert seen == [float(second) for second in range(1, rounds + 1)]


def test_a_thread_that_waits_for_the_outcome_of_another_lets_time_pass(clock: VirtualClock) -> None:
    condition, ready = clock.condition(), []

    def put() -> None:
        with condition:
            ready.append(clock.monotonic())
            condition.notify_all()

    is_scheduled = threading.Event()

    def schedule() -> None:
        clock.loop().call_later(HOUR_S, put)
        is_scheduled.set()

    with clock.at_work():
        clock.loop().call_soon_threadsafe(schedule)
        assert is_scheduled.wait(60)  # else time could pass before
        with condition:
            assert condition.wait_for(lambda: ready, timeout=2 * HOUR_S) == [HOUR_S]
            assert not condition.wait_for(lambda: False, timeout=HOUR_S)
        assert clock.monotonic() == 2 * HOUR_S


def traced(seed: int) -> list[tuple[int, float]]:
    """The actions, with their times, of tasks that sleep, work in threads and start each other."""
    chance, trace = random.Random(seed), []
    plan = [[chance.choice(("sleep", "thread")) for _ in range(10)] for _ in range(20)]
    with VirtualClock() as clock:

        async def task(number: int) -> None:
            for step, kind in enumerate(plan[number]):
                if kind == "sleep":
                    await asyncio.sleep((number * 7 + step) % 5 + 0.1)
                else:
                    await asyncio.to_thread(time.thread_time)
            trace.append((number, clock.monotonic()))

        async def every() -> None:
            await asyncio.gather(*(task(number) for number in range(len(plan))))

        run(clock, every())
    return sorted(trace)


def test_what_happens_does_not_depend_on_the_machine() -> None:
    assert len({str(traced(3)) for _ in range(5)}) == 1
