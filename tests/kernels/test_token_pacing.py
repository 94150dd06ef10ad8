"""Pacing in tokens, on a clock of our own: the quota of a minute holds for what calls take, and is used up."""

import bisect
import heapq
import math
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import lists_up_to

from rankbeam.transforms.kernels.pacing import Pacer, TokenPacer, first_to_begin, lane_pacer

QUOTA = 400_000
MOST_OUTPUT = 1024


@dataclass(frozen=True)
class Job:
    """A call: what it takes, what it reserves, and how long it is in flight."""

    tokens: float
    reserved: float
    latency_s: float


@dataclass
class Sent:
    """When calls began, and the tokens that they took."""

    at: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)

    def busiest(self, window_s: float) -> float:
        """The most tokens in any window, its end left out."""
        totals = [0.0]
        for tokens in self.tokens:
            totals.append(totals[-1] + tokens)
        ends = [bisect.bisect_left(self.at, begun + window_s) for begun in self.at]
        return max(totals[end] - totals[place] for place, end in enumerate(ends))


def send(pacer: Pacer | TokenPacer, jobs: list[Job], *, settled: bool = True) -> Sent:
    """Begin calls one after the other, each as soon as it may, and settle those that are answered meanwhile."""
    now, log = 0.0, Sent()
    in_flight: list[tuple[float, int, Any]] = []
    for number, job in enumerate(jobs):
        while True:
            while in_flight and in_flight[0][0] <= now:
                _, which, reservation = heapq.heappop(in_flight)
                pacer.settle(reservation, jobs[which].tokens if settled else jobs[which].reserved)
            wait_s = pacer.wait_s(now, job.reserved)
            if wait_s == 0:
                break
            now = min(now + wait_s, in_flight[0][0] if in_flight else math.inf)
        begin = pacer.spend if isinstance(pacer, Pacer) else pacer.reserve
        heapq.heappush(in_flight, (now + job.latency_s, number, begin(now, job.reserved)))
        log.at.append(now)
        log.tokens.append(job.tokens)
    return log


def workload(reserve: str) -> list[Job]:
    """3,000 calls of about 1,950 tokens: long requests, answers of very different length."""
    chance = random.Random(7)
    drawn = [
        (
            chance.lognormvariate(7.3, 0.5),
            min(float(MOST_OUTPUT), chance.lognormvariate(5.6, 0.6)),
            chance.uniform(1, 3),
        )
        for _ in range(3000)
    ]
    mean = sum(output for _, output, _ in drawn) / len(drawn)
    reserved = {
        "mean": lambda request: request + mean,
        "mean, 20% low": lambda request: 0.8 * (request + mean),
        "most": lambda request: request + MOST_OUTPUT,
    }[reserve]
    return [Job(request + output, reserved(request), latency_s) for request, output, latency_s in drawn]


@pytest.mark.parametrize(
    ("reserve", "settled", "time", "busiest"),
    [
        ("mean", True, (0.98, 1.02), (1.0, 1.03)),
        ("mean, 20% low", True, (0.97, 1.02), (1.0, 1.12)),
        ("mean, 20% low", False, (0.75, 0.85), (1.2, 1.35)),
        ("most", True, (0.98, 1.03), (0.95, 1.005)),
        ("most", False, (1.3, 1.45), (0.7, 0.8)),
    ],
)
def test_reserving_the_most_and_settling_is_fast_and_keeps_the_quota(
    reserve: str, settled: bool, time: tuple[float, float], busiest: tuple[float, float]
) -> None:
    """All else is slower, or exceeds the quota: seconds and the busiest minute, as shares of the ideal."""
    jobs = workload(reserve)
    log = send(TokenPacer(QUOTA), jobs, settled=settled)
    ideal_s = sum(job.tokens for job in jobs) / QUOTA * 60
    assert time[0] <= log.at[-1] / ideal_s <= time[1]
    assert busiest[0] <= log.busiest(60.0) / QUOTA <= busiest[1]


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    """Calls that take at most what they reserve."""
    drawn = draw(lists_up_to(60, st.tuples(st.floats(1, 6000), st.floats(0, 1), st.floats(0, 90)), 1))
    return [Job(reserved * share, reserved, latency_s) for reserved, share, latency_s in drawn]


@settings(deadline=None)
@given(jobs=jobs())
def test_no_minute_takes_more_than_the_quota(jobs: list[Job]) -> None:
    log = send(TokenPacer(6000), jobs)
    assert log.busiest(60.0) <= 6000 * (1 + 1e-9)


@settings(deadline=None)
@given(jobs=jobs())
def test_what_is_reserved_never_exceeds_the_quota_even_before_it_is_settled(jobs: list[Job]) -> None:
    as_reserved = [Job(job.reserved, job.reserved, job.latency_s) for job in jobs]
    assert send(TokenPacer(6000), as_reserved).busiest(60.0) <= 6000 * (1 + 1e-9)


@settings(deadline=None)
@given(jobs=jobs(), at=st.floats(0, 1))
def test_a_pace_that_was_forgotten_does_not_begin_a_new_minute(jobs: list[Job], at: float) -> None:
    """Killed anywhere and begun again at once: a bare window would allow twice the quota."""
    jobs = jobs * 4
    before, after = TokenPacer(6000), TokenPacer(6000)
    killed = int(at * len(jobs))
    first, second = send(before, jobs[:killed]), send(after, jobs[killed:])
    restarted = max(first.at, default=0.0)
    both = Sent(first.at + [restarted + moment for moment in second.at], first.tokens + second.tokens)
    largest = max(job.reserved for job in jobs)
    assert both.busiest(60.0) <= 6000 + 2 * (largest + 100)  # the credit of a second, and one call each


def test_calls_are_spread_over_the_minute() -> None:
    log = send(TokenPacer(60_000), [Job(500, 500, 1.0)] * 400)
    assert log.busiest(1.0) <= 1500
    assert log.at[-1] == pytest.approx(199.5, abs=2.0)


def test_a_call_that_takes_more_than_it_reserved_is_made_up_for() -> None:
    log = send(TokenPacer(60_000), [Job(1000, 500, 1.0)] * 600)
    assert log.busiest(60.0) <= 60_000 + 2 * 1000
    assert log.at[-1] == pytest.approx(600.0, abs=5.0)


def test_a_call_above_the_whole_window_can_never_begin() -> None:
    pacer = TokenPacer(1000)
    assert pacer.fits(1000)
    assert not pacer.fits(1001)
    assert pacer.wait_s(0.0, 1000) == 0.0
    assert pacer.wait_s(0.0, 1001) == math.inf


def test_two_halves_of_a_minute_are_half_a_minute_apart() -> None:
    pacer = TokenPacer(1000)
    pacer.reserve(0.0, 500)
    assert pacer.wait_s(0.0, 500) == 30.0
    assert pacer.wait_s(0.0, 501) == 60.1  # until the first has left the window


def test_the_mean_is_that_of_the_last_minute() -> None:
    pacer = TokenPacer(1000)
    assert pacer.mean() == 0.0
    pacer.reserve(0.0, 500)
    settled = pacer.reserve(61.0, 300)
    assert pacer.mean() == 300.0
    pacer.settle(settled, 100)
    assert pacer.mean() == 100.0


def test_an_idle_lane_does_not_save_up_tokens() -> None:
    pacer = TokenPacer(60_000)
    pacer.reserve(0.0, 500)
    begun, now = [], 1000.0
    for _ in range(20):
        now += pacer.wait_s(now, 500)
        pacer.reserve(now, 500)
        begun.append(now)
    assert bisect.bisect_left(begun, 1001.0) <= 4  # a second's tokens, and as many again as credit


def test_requests_and_tokens_both_bound_the_pace() -> None:
    few_requests = send(lane_pacer(60, 0, 1, 600_000), [Job(100, 100, 0.1)] * 30)
    few_tokens = send(lane_pacer(6000, 0, 1, 6000), [Job(100, 100, 0.1)] * 30)
    assert few_requests.at[-1] == pytest.approx(29.0, abs=1.0)
    assert few_tokens.at[-1] == pytest.approx(29.0, abs=1.5)


def test_lanes_share_tokens_as_they_share_requests() -> None:
    pacers = [lane_pacer(1500, lane, 4, 100_000).tokens for lane in range(4)]
    limits = [pacer.per_minute for pacer in pacers if pacer is not None]
    assert limits == [28_000, 24_000, 24_000, 24_000]


def test_calls_without_tokens_do_not_wait_for_those_that_have() -> None:
    pacer = lane_pacer(60_000, 0, 1, 1000)
    pacer.spend(0.0, 1000)
    assert pacer.wait_s(1.0, 1) > 50
    assert pacer.wait_s(1.0) == 0.0


def test_push_back_slows_tokens_by_the_share_of_calls_that_was_refused() -> None:
    """Tokens allow one call a second; to refuse it halves the pace, however many requests would be allowed."""
    pacer = lane_pacer(60_000, 0, 1, 6000)
    pacer.spend(0.0, 100)
    pacer.push_back(0.0)
    assert pacer.pace(0.0) == pytest.approx(0.5)
    pacer.spend(1.0, 100)
    assert pacer.wait_s(1.0, 100) == pytest.approx(1.0 / pacer.pace(1.0), rel=0.01)


@given(
    lists_up_to(60, st.integers(1, 1000), 1),
    st.integers(0, 10**6),
)
def test_no_call_is_overtaken_by_more_than_eight(sizes: list[int], seed: int) -> None:
    pacer, chance = TokenPacer(1000), random.Random(seed)
    waiting = [[size, 0] for size in sizes]
    coming = [[chance.randint(1, 100), 0] for _ in range(100)]
    now = 0.0
    while waiting:
        waits = [pacer.wait_s(now, size) for size, _ in waiting]
        place = first_to_begin(waits, [count for _, count in waiting])
        now += waits[place]
        size, count = waiting.pop(place)
        pacer.reserve(now, size)
        for entry in waiting[:place]:
            entry[1] += 1
        assert count <= 8
        waiting += [coming.pop()] if coming else []


@settings(deadline=None)
@given(
    earlier=st.lists(st.tuples(st.floats(0, 6000), st.floats(0, 6000)), max_size=20),
    moments=st.lists(st.floats(0, 90), min_size=20, max_size=20),
)
def test_a_call_that_takes_all_of_a_minute_begins_in_the_end(
    earlier: list[tuple[float, float]], moments: list[float]
) -> None:
    """Whatever sums of fractions leave over: a call that fits waits for two windows at most."""
    pacer, now = TokenPacer(6000), 0.0
    for (reserved, taken), pause in zip(earlier, moments, strict=False):
        now += pause + pacer.wait_s(now + pause, reserved)
        pacer.settle(pacer.reserve(now, reserved), taken)
    waited_s = pacer.wait_s(now, 6000.0)
    assert waited_s <= 121.0
    assert pacer.wait_s(now + waited_s, 6000.0) == 0.0


def test_the_mean_is_that_of_the_calls_of_the_last_minute() -> None:
    pacer = TokenPacer(6000)
    assert pacer.mean() == 0.0
    pacer.settle(pacer.reserve(0.0, 3000), 1000)
    pacer.reserve(10.0, 5000)
    assert pacer.mean() == 3000.0
    at = pacer.wait_s(0.0, 1000)  # until the first one has left the minute
    pacer.reserve(at, 1000)
    assert (at > 60.0, pacer.mean()) == (True, 3000.0)
    pacer.reserve(at + 0.1, 0)
    assert pacer.mean() == 2000.0


def test_a_pacer_counts_what_a_call_took_once_it_is_settled() -> None:
    pacer = Pacer({1.0: 100}, 0.01, TokenPacer(6000))
    reservation = pacer.spend(0.0, 500)
    assert pacer.wait_s(0.0, 500) == 5.0
    pacer.settle(reservation, 100)
    assert pacer.wait_s(0.0, 500) == 1.0
