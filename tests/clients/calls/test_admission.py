"""Admission: slots, pace and tokens of one lane, on the virtual clock."""

import asyncio
from collections import Counter as Tally
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from rankbeam.transforms.clients.calls.admission import Admission, LaneStopped
from rankbeam.transforms.clients.calls.health import Breaker, StepBreaker
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, FailureKind

FAST = Quota(requests_per_minute=60_000)


def breakers(give_up_after_s: float) -> StepBreaker:
    return StepBreaker(Breaker(give_up_after_s), Breaker(give_up_after_s), "call")


@dataclass
class Line:
    """An admission, and what went through it."""

    clock: VirtualClock
    quota: Quota = FAST
    is_held: Callable[[], bool] = lambda: False
    begun: list[tuple[str, float]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    def __post_init__(self) -> None:
        self.admission = Admission(self.quota, 0, self.clock, self.is_held)
        self.breaker = breakers(self.quota.give_up_after_s)

    async def attempt(
        self,
        name: str,
        seconds: float = 0.0,
        error: BaseException | None = None,
        tokens: tuple[int, int] = (0, 0),
        *,
        is_new: bool = True,
    ) -> None:
        async with self.admission.attempt(self.breaker, tokens[0], is_new=is_new) as permit:
            self.begun.append((name, self.clock.monotonic()))
            self.in_flight += 1
            self.most_in_flight = max(self.in_flight, self.most_in_flight)
            try:
                await asyncio.sleep(seconds)
            finally:
                self.in_flight -= 1
            if error is not None:
                raise error
            permit.used = tokens[1]


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def run(clock: VirtualClock, coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(coroutine, clock.loop()).result(60)


def together(line: Line, *attempts: Coroutine[Any, Any, None]) -> list[BaseException | None]:
    async def gather() -> list[BaseException | None]:
        return await asyncio.gather(*attempts, return_exceptions=True)

    ended: list[BaseException | None] = run(line.clock, gather())
    return ended


def times(line: Line) -> list[float]:
    return [at for _, at in line.begun]


def test_attempts_begin_at_the_pace_first_come_first_served(clock: VirtualClock) -> None:
    line = Line(clock, Quota(requests_per_minute=60))
    together(line, *(line.attempt(str(number)) for number in range(5)))
    assert [name for name, _ in line.begun] == ["0", "1", "2", "3", "4"]
    assert all(1.0 <= later - earlier < 1.1 for earlier, later in pairwise(times(line)))
    assert line.admission.waited_s == pytest.approx(times(line)[-1])


def test_no_more_are_in_flight_than_there_are_slots(clock: VirtualClock) -> None:
    line = Line(clock, Quota(requests_per_minute=60_000, concurrent_calls=3))
    together(line, *(line.attempt(str(number), 10.0) for number in range(7)))
    assert line.most_in_flight == 3
    assert times(line)[3] == pytest.approx(10.0, abs=0.1)


@pytest.mark.parametrize("error", [CallError(FailureKind.UNAVAILABLE, "down"), ZeroDivisionError("a bug")])
def test_an_attempt_that_fails_frees_its_slot(clock: VirtualClock, error: BaseException) -> None:
    line = Line(clock, Quota(requests_per_minute=60_000, concurrent_calls=1))
    assert together(line, line.attempt("a", 1.0, error), line.attempt("b")) == [error, None]


def test_what_is_cancelled_while_it_waits_holds_nothing_and_lets_the_next_one_begin(clock: VirtualClock) -> None:
    line = Line(clock, Quota(requests_per_minute=60, concurrent_calls=2))

    async def work() -> None:
        tasks = [asyncio.create_task(line.attempt(name, 0.1)) for name in "abcd"]
        await asyncio.sleep(0.5)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        await asyncio.gather(*(line.attempt(name, 90.0) for name in "ef"))

    run(clock, work())
    assert [name for name, _ in line.begun] == ["a", "c", "d", "e", "f"]
    assert times(line)[1] == pytest.approx(1.0, abs=0.1)
    assert line.most_in_flight == 2  # both slots are still there


def test_only_refusals_for_the_rate_slow_the_pace(clock: VirtualClock) -> None:
    gaps = {}
    for kind in FailureKind:
        line = Line(clock, Quota(requests_per_minute=600))
        error = CallError(kind, "no")
        together(line, *(line.attempt(str(number), 0.0, error) for number in range(10)))
        gaps[kind] = times(line)[-1] - times(line)[-2]
    slow = gaps.pop(FailureKind.QUOTA)
    assert list(gaps.values()) == [pytest.approx(0.1)] * len(gaps)
    gap, pace = 0.1, 0.9  # of ten calls a second, each refusal takes one
    for _ in range(8):
        gap, pace = 0.1 / pace, pace + 0.03 * 0.1 / pace - 0.1
    assert slow == pytest.approx(gap, rel=0.02)


def test_tokens_are_reserved_and_settled_with_what_an_attempt_took(clock: VirtualClock) -> None:
    quota = Quota(requests_per_minute=60_000, tokens_per_minute=6000)
    settled, unsettled = Line(clock, quota), Line(clock, quota)
    together(settled, *(settled.attempt(str(number), 0.01, None, (1000, 100)) for number in range(20)))
    began = clock.monotonic()
    together(unsettled, *(unsettled.attempt(str(number), 0.01, None, (1000, 1000)) for number in range(12)))
    assert times(settled)[-1] < 25.0
    assert times(unsettled)[-1] - began > 100.0


def test_a_refused_attempt_takes_no_tokens(clock: VirtualClock) -> None:
    line = Line(clock, Quota(requests_per_minute=60_000, tokens_per_minute=6000))
    line.breaker.service.answered_before()
    error = CallError(FailureKind.QUOTA, "slow down")
    together(line, *(line.attempt(str(number), 0.0, error, (6000, 0)) for number in range(5)))
    assert times(line)[-1] < 10.0


def test_an_attempt_that_was_dropped_takes_the_tokens_of_a_usual_one(clock: VirtualClock) -> None:
    """One attempt in ten that held all that it may take for a minute would leave less than half to the others."""
    line = Line(clock, Quota(requests_per_minute=60_000, tokens_per_minute=60_000))
    error = CallError(FailureKind.UNAVAILABLE, "connection reset")
    problems = [error if number % 10 == 9 else None for number in range(600)]
    together(line, *(line.attempt(str(n), 0.01, problem, (5000, 200)) for n, problem in enumerate(problems)))
    took_s = times(line)[-1] - times(line)[0]
    assert 0.9 * 120.0 < took_s < 1.35 * 120.0  # 600 attempts of 200 tokens


def test_an_attempt_that_timed_out_holds_all_that_it_may_have_taken(clock: VirtualClock) -> None:
    line = Line(clock, Quota(requests_per_minute=60_000, tokens_per_minute=6000))
    error = CallError(FailureKind.TIMEOUT, "no answer within 60 s")
    together(line, line.attempt("slow", 0.0, error, (6000, 0)), line.attempt("next", 0.0, None, (100, 100)))
    assert times(line)[1] - times(line)[0] >= 60.0


def test_a_call_above_the_whole_window_is_refused_and_not_waited_for(clock: VirtualClock) -> None:
    line = Line(clock, Quota(requests_per_minute=60_000, tokens_per_minute=6000))
    (error,) = together(line, line.attempt("a", 0.0, None, (6001, 0)))
    assert isinstance(error, CallError)
    assert (error.kind, error.attempts) == (FailureKind.INVALID, 0)
    assert "6,001 tokens, more than the 6,000 a minute" in error.message


def test_a_large_call_is_overtaken_by_eight_small_ones_and_no_more(clock: VirtualClock) -> None:
    line = Line(clock, Quota(requests_per_minute=60_000, tokens_per_minute=6000))
    first = line.attempt("first", 0.0, None, (3000, 3000))
    small = [line.attempt(f"small {number}", 0.0, None, (10, 10)) for number in range(20)]
    together(line, first, line.attempt("large", 0.0, None, (6000, 6000)), *small)
    names = [name for name, _ in line.begun]
    assert names.index("large") == 9
    assert sorted(names[10:]) == sorted(f"small {number}" for number in range(8, 20))


@pytest.mark.parametrize(("large", "place"), [(8, 1), (9, 10)])
def test_a_small_call_overtakes_large_ones_if_it_is_among_the_first_nine(
    clock: VirtualClock, large: int, place: int
) -> None:
    line = Line(clock, Quota(requests_per_minute=60_000, tokens_per_minute=6000))
    first = line.attempt("first", 0.0, None, (3000, 3000))
    others = [line.attempt(f"large {number}", 0.0, None, (4000, 10)) for number in range(large)]
    together(line, first, *others, line.attempt("small", 0.0, None, (10, 10)))
    assert [name for name, _ in line.begun].index("small") == place


def test_nothing_begins_while_it_is_held(clock: VirtualClock) -> None:
    line = Line(clock, is_held=lambda: clock.monotonic() < 5.0)
    together(line, line.attempt("a"), line.attempt("b"))
    assert len(line.begun) == 2
    assert all(5.0 <= at < 5.2 for at in times(line))


def test_what_was_woken_in_vain_waits_again(clock: VirtualClock) -> None:
    looks: Tally[float] = Tally()

    def is_held() -> bool:
        """At the second look of every moment: between waking an attempt and the attempt itself."""
        looks[clock.monotonic()] += 1
        assert looks[clock.monotonic()] < 50
        return looks[clock.monotonic()] > 1 and clock.monotonic() < 5.0

    line = Line(clock, is_held=is_held)
    together(line, line.attempt("a"), line.attempt("b"))
    first, second = times(line)
    assert first == 0.0
    assert 5.0 <= second < 5.2


def test_what_waits_when_it_is_stopped_does_not_begin(clock: VirtualClock) -> None:
    line = Line(clock, Quota(requests_per_minute=60))

    async def work() -> list[BaseException | None]:
        asyncio.get_running_loop().call_later(2.5, line.admission.stop)
        attempts = [line.attempt(str(number)) for number in range(6)]
        ended = await asyncio.gather(*attempts, line.admission.pause(9.0), return_exceptions=True)
        with pytest.raises(LaneStopped):
            await line.admission.pause(1.0)
        with pytest.raises(LaneStopped):
            await line.attempt("later")
        return ended

    ended = run(clock, work())
    assert [type(outcome) for outcome in ended] == [*[type(None)] * 3, *[LaneStopped] * 4]
    assert clock.monotonic() == 2.5


def test_a_pause_lasts_as_long_as_it_should(clock: VirtualClock) -> None:
    line = Line(clock)
    run(clock, line.admission.pause(7.0))
    assert clock.monotonic() == 7.0


def test_while_the_breaker_is_open_one_probe_at_a_time_begins_and_new_calls_are_first(clock: VirtualClock) -> None:
    line, down = Line(clock), CallError(FailureKind.UNAVAILABLE, "down")
    together(line, *(line.attempt(str(number), 0.0, down) for number in range(20)))
    opened, probes = clock.monotonic(), len(line.begun)
    again = [line.attempt(f"again {number}", 0.5, None, is_new=False) for number in range(3)]
    new = [line.attempt(f"new {number}", 0.5, down) for number in range(2)]
    together(line, *again, *new)
    begun = [(name, round(at - opened, 3)) for name, at in line.begun[probes:]]
    assert [name for name, _ in begun] == ["new 0", "new 1", "again 0", "again 1", "again 2"]
    assert [at for _, at in begun[:3]] == [1.0, 3.5, 8.0]
    assert begun[3][1] == pytest.approx(8.5, abs=0.1)


def test_answers_are_usable_unless_a_permit_says_otherwise(clock: VirtualClock) -> None:
    line, malformed = Line(clock), CallError(FailureKind.MALFORMED, "no JSON")

    async def work() -> None:
        for number in range(30):
            line.breaker = replace(line.breaker, call=str(number))
            with suppress(CallError):
                await line.attempt(str(number), 0.0, None if number == 15 else malformed)

    run(clock, work())
    assert not line.breaker.is_open  # 15 malformed answers, a usable one, and 14 more


def test_what_waits_for_a_service_that_is_given_up_is_refused(clock: VirtualClock) -> None:
    line, down = Line(clock), CallError(FailureKind.UNAVAILABLE, "down")
    together(line, *(line.attempt(str(number), 0.0, down) for number in range(20)))
    opened = clock.monotonic()
    ended = together(line, *(line.attempt(str(number), 0.0, down) for number in range(100)))
    assert clock.monotonic() == opened + 600.0
    assert all(isinstance(error, CallError) for error in ended)
    assert sum(str(error).startswith("not asked: ") for error in ended) == 100 - (len(line.begun) - 20)
    assert len(line.begun) <= 60


def test_a_service_that_is_down_does_not_hold_up_another_one_of_the_pool(clock: VirtualClock) -> None:
    line, down = Line(clock, Quota(requests_per_minute=600)), CallError(FailureKind.UNAVAILABLE, "down")
    together(line, *(line.attempt(str(number), 0.0, down) for number in range(20)))
    opened, broken = clock.monotonic(), line.breaker

    async def both() -> None:
        waiting = [asyncio.create_task(line.attempt(f"down {number}", 0.0, down)) for number in range(50)]
        await asyncio.sleep(0)
        line.breaker = breakers(600.0)
        await asyncio.gather(*(line.attempt(f"up {number}") for number in range(10)))
        assert clock.monotonic() - opened < 2.0
        line.breaker = broken
        await asyncio.wait(waiting)

    run(clock, both())
