"""Intervals of means whose values have a range: at the edges, by hand, and laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.statistics.bootstrap import bootstrap_interval
from rankbeam.transforms.kernels.statistics.estimates import DifferenceEstimate, Estimate
from rankbeam.transforms.kernels.statistics.moments import Moments

NONE = np.empty(0)


def estimate_of(values: list[float], floor: float = 0.0, ceiling: float | None = 1.0) -> Estimate:
    moments = Moments.of(np.array(values)[:, np.newaxis])
    (mean,), (error,), (highest,) = moments.means(), moments.standard_errors(), moments.highest
    return Estimate(moments.count, mean, error, floor, ceiling, highest, moments.successes()[0])


def difference_of(values: list[float], width: float | None = 1.0) -> DifferenceEstimate:
    moments = Moments.of(np.array(values)[:, np.newaxis])
    row = (moments.means(), moments.standard_errors(), moments.lowest, moments.highest)
    (mean,), (error,), (low,), (high,) = row
    return DifferenceEstimate(moments.count, mean, error, low, high, width, np.count_nonzero(values))


def replicates_of(values: list[float]) -> FloatArray:
    weights = np.random.default_rng(0).poisson(1, (1000, len(values)))
    return weights @ np.array(values) / np.maximum(weights.sum(axis=1), 1)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("successes", "count"), [(0, 20), (1, 20), (30, 30), (15, 30), (99, 100), (2, 2), (999, 4000)])
def test_values_that_are_0_or_1_have_the_exact_interval_of_scipy(successes: int, count: int, confidence: float) -> None:
    values = [1.0] * successes + [0.0] * (count - successes)
    exact = stats.binomtest(successes, count).proportion_ci(confidence, method="exact")
    result = estimate_of(values).interval((1.0 - confidence) / 2.0)
    assert result == pytest.approx((exact.low, exact.high), rel=1e-9, abs=1e-15)


def test_thirty_successes_of_thirty_are_not_certain() -> None:
    low, high = estimate_of([1.0] * 30).interval()
    assert (low, high) == (pytest.approx(0.025 ** (1 / 30)), 1.0)


def test_of_many_successes_and_failures_the_interval_is_no_longer_exact_but_the_same() -> None:
    exact = stats.binomtest(1500, 3000).proportion_ci(0.95, method="exact")
    result = estimate_of([1.0] * 1500 + [0.0] * 1500).interval()
    assert result != pytest.approx((exact.low, exact.high), abs=1e-6)
    assert result == pytest.approx((exact.low, exact.high), abs=0.001)


@pytest.mark.parametrize(
    ("values", "floor", "ceiling", "more"),
    [
        ([0.5] * 40, 0.0, 1.0, [0.0, 1.0]),
        ([1.0] * 30 + [0.8, 0.9] * 10, 0.0, 1.0, [0.0, 1.0]),
        ([0.9] * 49 + [0.2], 0.0, 1.0, [0.0, 1.0]),
        ([0.25, -0.5, 0.75] * 10, -1.0, 1.0, [-1.0, 1.0]),
        ([3.0, 5.0] * 20, 0.0, None, [0.0, 5.0]),
    ],
)
@pytest.mark.parametrize("tail", [0.025, 0.1])
def test_the_interval_is_students_of_the_values_and_one_more_at_each_end(
    values: list[float], floor: float, ceiling: float | None, more: list[float], tail: float
) -> None:
    whole = [*values, *more]
    low, high = stats.t.interval(1.0 - 2.0 * tail, len(values) - 1, np.mean(whole), stats.sem(whole))
    expected = (max(low, floor), high if ceiling is None else min(high, ceiling))
    assert estimate_of(values, floor, ceiling).interval(tail) == pytest.approx(expected, rel=1e-12)


def test_equal_values_without_an_upper_bound_have_no_interval() -> None:
    assert all(map(math.isnan, estimate_of([1000.0] * 40, 0.0, None).interval()))
    assert all(map(math.isnan, difference_of([2.0] * 40, None).interval(np.full(1000, 2.0))))
    varied = difference_of([3.0, 5.0] * 20, None)
    assert varied.interval(NONE) == pytest.approx(stats.t.interval(0.95, 39, varied.mean, varied.standard_error))


def test_fewer_than_two_values_have_no_interval() -> None:
    for values in ([1.0], [0.3]):
        assert all(map(math.isnan, estimate_of(values).interval()))
        assert all(map(math.isnan, difference_of(values).interval(NONE)))


@pytest.mark.parametrize("replicates", [NONE, np.full(1000, 0.5)])
def test_equal_differences_allow_for_what_no_query_showed(replicates: FloatArray) -> None:
    low, high = difference_of([0.5] * 40).interval(replicates)
    unseen = 1 - 0.025 ** (1 / 40)  # at most so many of all queries have another value, with 97.5% confidence
    assert (low, high) == pytest.approx((0.5 - unseen * 1.5, 0.5 + unseen * 0.5))


def test_where_enough_queries_differ_the_interval_of_a_difference_is_the_bootstraps() -> None:
    values = np.random.default_rng(1).normal(0.05, 0.2, 60).tolist()
    estimate, drawn = difference_of(values), replicates_of(values)
    assert estimate.rarity == 0.0
    plain = bootstrap_interval(estimate.mean, estimate.standard_error, drawn, 60)
    assert estimate.interval(drawn) == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize(("others", "rarity"), [(1, 1.0), (4, 1.0), (7, 0.6), (9, 0.2), (12, 0.0)])
def test_rarity_falls_with_the_queries_that_differ(others: int, rarity: float) -> None:
    for usual, other in ((0.5, 1.0), (1.0, 0.25), (0.0, 0.5)):
        assert difference_of([usual] * (50 - others) + [other] * others).rarity == pytest.approx(rarity, abs=1e-9)


def test_differences_count_by_those_that_are_not_0() -> None:
    around = DifferenceEstimate(50, 0.0, 0.02, -0.5, 0.5, 1.0, events=4)
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
    difference, drawn = difference_of(values), replicates_of(values)
    cases = [
        (0.0, estimate_of(values).interval((1.0 - confidence) / 2.0), estimate_of(values).interval(0.0005)),
        *((-1.0, *(difference.interval(estimate, some) for some in (confidence, 0.999))) for estimate in (NONE, drawn)),
    ]
    for floor, (low, high), wider in cases:
        assert floor <= low <= difference.mean + 1e-12
        assert difference.mean - 1e-12 <= high <= 1.0
        assert low < high
        assert wider[0] <= low + 1e-12
        assert high <= wider[1] + 1e-12


@given(values=st.lists(st.integers(0, 64).map(lambda number: number / 64), min_size=3, max_size=30))
def test_a_mirrored_sample_has_the_mirrored_interval(values: list[float]) -> None:
    low, high = estimate_of(values).interval()
    mirrored = estimate_of([1.0 - value for value in values])
    assert mirrored.interval() == pytest.approx((1.0 - high, 1.0 - low), abs=1e-9)
