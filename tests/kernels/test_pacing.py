"""Pacing on a clock of our own: the quota holds in every window, and is used up."""

import bisect
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.transforms.kernels.pacing import Pacer, TokenPacer, lane_of, lane_pacer, lane_shares

RATES = st.one_of(st.floats(0.5, 60.0), st.floats(60.0, 6000.0), st.sampled_from([30.0, 60.0, 100.0, 1500.0, 3000.0]))


def send(pacer: Pacer, calls: int, lags: list[float], start: float = 0.0) -> list[float]:
    """When the calls of one lane begin, if every sleep lasts longer than it should by the next of some lags."""
    now, begun = start, []
    for number in range(calls):
        while (wait := pacer.wait_s(now)) > 0:
            now += wait + lags[number % len(lags)]
        pacer.spend(now)
        begun.append(now)
    return begun


def busiest(begun: list[float], window_s: float) -> int:
    """The most calls in any window of this length, its end left out."""
    begun = sorted(begun)
    return max(bisect.bisect_left(begun, first + window_s) - place for place, first in enumerate(begun))


@settings(deadline=None, max_examples=examples(150))
@given(
    rate=RATES,
    lanes=st.integers(1, 5),
    lags=st.lists(st.floats(0, 0.3), min_size=1, max_size=20),
    starts=st.lists(st.floats(0, 2), min_size=5, max_size=5),
)
def test_no_window_holds_more_than_the_quota(rate: float, lanes: int, lags: list[float], starts: list[float]) -> None:
    shares = lane_shares(rate, min(lanes, -(-int(rate) // 60) or 1))
    calls = min(600, int(rate * 2) + 5)
    begun = []
    for lane in range(len(shares)):
        own = sum(lane_of(position, shares) == lane for position in range(calls))
        begun += send(lane_pacer(rate, lane, len(shares)), own, lags[lane:] + lags[:lane], starts[lane])
    assert busiest(begun, 1.0) <= -(-rate // 60)
    assert busiest(begun, 60.0) <= max(1, rate)


@pytest.mark.long
@pytest.mark.parametrize("rate", [100.0, 1500.0, 3000.0, 30000.0])
@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_the_quota_is_used_up(rate: float, lanes: int) -> None:
    lanes = min(lanes, int(rate) // 60)
    shares = lane_shares(rate, lanes)
    chance = random.Random(7)
    calls = int(rate * 4)
    lags = [0.05 if chance.random() < 0.02 else 0.001 for _ in range(997)]  # now and then a loop is busy
    begun = []
    for lane in range(lanes):
        own = sum(lane_of(position, shares) == lane for position in range(calls))
        begun += send(lane_pacer(rate, lane, lanes), own, lags)
    assert calls / (max(begun) - min(begun)) >= 0.97 * rate / 60


@pytest.mark.parametrize(("window_s", "travel_s"), [(1.0, 0.015), (60.0, 0.1), (10.0, 0.0)])
def test_a_full_window_is_waited_for_and_as_long_as_calls_travel(window_s: float, travel_s: float) -> None:
    pacer = Pacer({window_s: 2}, 0.01)
    for now in (5.0, 5.5):
        pacer.spend(now)
    assert pacer.wait_s(5.75) == pytest.approx(window_s + travel_s - 0.75)
    now = 5.0 + window_s + travel_s + 1e-6
    assert pacer.wait_s(now) == 0.0
    pacer.spend(now)
    assert pacer.wait_s(now) == pytest.approx(0.5 - 1e-6)


def test_calls_are_spread_over_the_second() -> None:
    begun = send(lane_pacer(1500, 0, 1), 100, [0.0])
    assert busiest(begun, 0.2) <= 6


@pytest.mark.parametrize("rate", [0.5, 60.0, 100.0, 1500.0, 1501.0])
def test_lanes_spread_their_calls_over_the_quotas_minute_and_no_second_holds_less_room(rate: float) -> None:
    for lanes in {1, -(-int(rate) // 60)}:
        shares = lane_shares(rate, lanes)
        for lane, share in enumerate(shares):
            interval_s = lane_pacer(rate, lane, lanes).interval_s
            assert interval_s == pytest.approx(60.0 * sum(shares) / (rate * share))
            assert interval_s * share >= 1.0 - 1e-12


def test_an_idle_lane_does_not_save_up_its_turns() -> None:
    pacer = lane_pacer(1500, 0, 1)
    first = send(pacer, 10, [0.0])
    later = send(pacer, 100, [0.0], start=1000.0)
    assert busiest(first + later, 1.0) <= 25
    assert busiest(later, 0.2) <= 6


def test_refused_calls_slow_the_pace_and_time_brings_it_back() -> None:
    pacer = lane_pacer(1500, 0, 1)
    for moment in range(100):
        pacer.push_back(moment * 0.04)
    slow = pacer.pace(4.0)
    assert 0.05 <= slow < 0.2
    begun = send(pacer, 60, [0.0], start=4.0)
    gaps = [later - earlier for earlier, later in pairwise(begun)]
    assert gaps[5] > 0.15  # about a fifth of the full pace
    assert pacer.pace(4.0 + 60.0) == 1.0


def test_a_few_refusals_cost_little() -> None:
    pacer = lane_pacer(1500, 0, 1)
    now = 0.0
    for call in range(1500):
        now += pacer.wait_s(now)
        pacer.spend(now)
        if call % 40 == 0:
            pacer.push_back(now)
    assert 1500 / now > 0.94 * 25


def test_half_the_quota_at_the_server_is_found_out() -> None:
    """A server that lets 10 calls a second through, where the quota says 20."""
    pacer, now, served, refused = lane_pacer(1200, 0, 1), 0.0, [], 0
    while now < 120:
        now += pacer.wait_s(now)
        pacer.spend(now)
        if len([at for at in served[-10:] if at > now - 1.0]) >= 10:
            pacer.push_back(now)
            refused += 1
        else:
            served.append(now)
    assert len(served) > 0.9 * 120 * 10
    assert refused < 0.15 * len(served)


@given(st.integers(1, 2000), st.integers(1, 8))
def test_lanes_share_the_calls_as_they_share_the_pace(calls: int, lanes: int) -> None:
    shares = lane_shares(1500, lanes)
    counts = [sum(lane_of(position, shares) == lane for position in range(calls)) for lane in range(lanes)]
    assert sum(shares) == 25
    assert sum(counts) == calls
    assert all(abs(count - calls * share / 25) <= share for count, share in zip(counts, shares, strict=True))


def test_tokens_that_are_not_counted_have_a_mean_of_none_and_slow_nothing() -> None:
    pacer = Pacer({1.0: 2}, 0.5)
    assert (pacer.mean_tokens(), pacer.spend(0.0, 50.0)) == (0.0, None)
    pacer.push_back(0.0)
    assert pacer.pace(0.0) == 0.5  # two calls a second: one of two was refused


def test_a_large_quota_holds_the_calls_of_its_windows_only() -> None:
    pacer = lane_pacer(60_000_000, 0, 1)
    for call in range(20_000):
        pacer.spend(call / 100)
    counts = [len(begun) for begun in pacer._begun.values()]
    assert counts == pytest.approx([100, 6_000], rel=0.05)
    assert pacer.wait_s(200.0) == 0.0


def test_a_call_that_ends_after_its_minute_gives_no_tokens_back_to_a_later_window() -> None:
    pacer = TokenPacer(600)
    slow = pacer.reserve(0.0, 500)
    pacer.reserve(70.0, 100)
    pacer.settle(slow, 100)
    assert pacer.wait_s(70.0, 501) > 59
