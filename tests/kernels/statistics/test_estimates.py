"""Intervals of means whose values have a range: at the edges, by hand, and laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.statistics.bootstrap import bootstrap_interval
from rankbeam.transforms.kernels.statistics.estimates import Estimate
from rankbeam.transforms.kernels.statistics.moments import Moments

NONE = np.empty(0)


def estimate_of(values: list[float], floor: float | None = 0.0, ceiling: float | None = 1.0) -> Estimate:
    moments = Moments.of(np.array(values)[:, np.newaxis])
    row = (moments.means(), moments.standard_errors(), moments.lowest, moments.highest)
    (mean,), (error,), (low,), (high,) = row
    return Estimate(moments.count, mean, error, low, high, floor, ceiling, moments.successes()[0])


def replicates_of(values: list[float]) -> FloatArray:
    weights = np.random.default_rng(0).poisson(1, (1000, len(values)))
    return weights @ np.array(values) / np.maximum(weights.sum(axis=1), 1)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("successes", "count"), [(0, 20), (1, 20), (30, 30), (15, 30), (99, 100), (2, 2), (999, 4000)])
def test_values_that_are_0_or_1_have_the_exact_interval_of_scipy(successes: int, count: int, confidence: float) -> None:
    values = [1.0] * successes + [0.0] * (count - successes)
    exact = stats.binomtest(successes, count).proportion_ci(confidence, method="exact")
    found = estimate_of(values).interval(replicates_of(values), confidence)
    assert found == pytest.approx((exact.low, exact.high), rel=1e-9, abs=1e-15)


def test_thirty_successes_of_thirty_are_not_certain() -> None:
    low, high = estimate_of([1.0] * 30).interval(np.ones(1000))
    assert (low, high) == (pytest.approx(0.025 ** (1 / 30)), 1.0)


def test_of_many_successes_and_failures_the_interval_is_the_bootstraps() -> None:
    values = [1.0] * 1500 + [0.0] * 1500
    drawn, estimate = replicates_of(values), estimate_of(values)
    plain = bootstrap_interval(estimate.mean, estimate.standard_error, drawn, estimate.count)
    assert estimate.interval(drawn) == pytest.approx(plain, rel=1e-12)
    exact = stats.binomtest(1500, 3000).proportion_ci(0.95, method="exact")
    assert plain == pytest.approx((exact.low, exact.high), abs=0.003)


@pytest.mark.parametrize("replicates", [NONE, np.full(1000, 0.5)])
def test_equal_values_allow_for_what_no_query_showed(replicates: FloatArray) -> None:
    low, high = estimate_of([0.5] * 40).interval(replicates)
    unseen = 1 - 0.025 ** (1 / 40)  # at most so many of all queries have another value, with 97.5% confidence
    assert (low, high) == pytest.approx((0.5 - unseen * 0.5, 0.5 + unseen * 0.5))


def test_equal_values_without_a_known_range_have_no_interval() -> None:
    for floor, ceiling in ((0.0, None), (None, None)):
        assert all(map(math.isnan, estimate_of([1000.0] * 40, floor, ceiling).interval(np.full(1000, 1000.0))))
    varied = estimate_of([3.0, 5.0] * 20, 0.0, None)
    assert varied.interval(NONE) == pytest.approx(stats.t.interval(0.95, 39, varied.mean, varied.standard_error))


def test_fewer_than_two_values_have_no_interval() -> None:
    for values in ([1.0], [0.3]):
        assert all(map(math.isnan, estimate_of(values).interval(NONE)))


def test_where_values_differ_enough_the_interval_is_the_bootstraps() -> None:
    values = np.random.default_rng(1).beta(0.5, 0.5, 60).tolist()
    estimate, drawn = estimate_of(values), replicates_of(values)
    assert estimate.rarity == 0.0
    plain = bootstrap_interval(estimate.mean, estimate.standard_error, drawn, 60)
    assert estimate.interval(drawn) == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize(("others", "rarity"), [(1, 1.0), (4, 1.0), (7, 0.6), (9, 0.2), (12, 0.0)])
def test_rarity_falls_with_the_values_that_differ(others: int, rarity: float) -> None:
    for usual, other in ((0.5, 1.0), (1.0, 0.25), (0.0, 0.5)):
        assert estimate_of([usual] * (50 - others) + [other] * others).rarity == pytest.approx(rarity, abs=1e-9)


def test_differences_count_by_those_that_are_not_0() -> None:
    around = Estimate(50, 0.0, 0.02, -0.5, 0.5, -1.0, 1.0, None, 4)
    low, high = around.interval(NONE)
    assert around.rarity == 1.0
    assert -low == high > 0.07 > stats.t.ppf(0.975, 49) * 0.02


@given(
    values=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 0.9999]) | st.floats(0, 1), min_size=2, max_size=60),
    confidence=st.sampled_from([0.5, 0.8, 0.95, 0.99]),
)
def test_intervals_hold_the_mean_stay_in_the_range_and_are_never_a_point(
    values: list[float], confidence: float
) -> None:
    estimate, drawn = estimate_of(values), replicates_of(values)
    for replicates in (NONE, drawn):
        low, high = estimate.interval(replicates, confidence)
        wider = estimate.interval(replicates, 0.999)
        assert 0.0 <= low <= estimate.mean + 1e-12
        assert estimate.mean - 1e-12 <= high <= 1.0
        assert low < high
        assert wider[0] <= low + 1e-12
        assert high <= wider[1] + 1e-12


@given(values=st.lists(st.integers(0, 64).map(lambda number: number / 64), min_size=3, max_size=30))
def test_a_mirrored_sample_has_the_mirrored_interval(values: list[float]) -> None:
    low, high = estimate_of(values).interval(NONE)
    mirrored = estimate_of([1.0 - value for value in values])
    assert mirrored.interval(NONE) == pytest.approx((1.0 - high, 1.0 - low), abs=1e-9)
