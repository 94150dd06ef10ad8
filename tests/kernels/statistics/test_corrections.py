"""Corrections against values by hand and SciPy, the detectable difference against the power that it promises."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.statistics.corrections import (
    benjamini_hochberg,
    detectable_difference,
    effect_size,
    holm,
)

PROBABILITIES = st.lists(st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.01, 1.0]), max_size=30)
P_VALUES = [0.04, 0.01, 0.03, 0.005, 0.9]
Correction = Callable[[FloatArray], FloatArray]


def test_holm_by_hand() -> None:
    # Sorted: 0.005·5, 0.01·4, 0.03·3, 0.04·2 (below the one before), 0.9·1.
    assert holm(np.array(P_VALUES)).tolist() == pytest.approx([0.09, 0.04, 0.09, 0.025, 0.9], rel=1e-12)


def test_benjamini_hochberg_by_hand() -> None:
    # Sorted: 0.005·5/1, 0.01·5/2, 0.03·5/3, 0.04·5/4, 0.9·5/5.
    expected = [0.05, 0.025, 0.05, 0.025, 0.9]
    assert benjamini_hochberg(np.array(P_VALUES)).tolist() == pytest.approx(expected, rel=1e-12)


@given(p_values=PROBABILITIES)
def test_benjamini_hochberg_agrees_with_scipy(p_values: list[float]) -> None:
    expected = stats.false_discovery_control(p_values) if p_values else []
    np.testing.assert_allclose(benjamini_hochberg(np.array(p_values)), expected, rtol=1e-12)


@given(p_values=PROBABILITIES)
def test_holm_is_its_step_down_rule(p_values: list[float]) -> None:
    corrected = holm(np.array(p_values))
    for index, p in enumerate(p_values):
        below = [(sum(q >= other for q in p_values) * other) for other in p_values if other <= p]
        assert corrected[index] == pytest.approx(min(1.0, max(below)), rel=1e-12)


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
@given(p_values=PROBABILITIES, data=st.data())
def test_corrected_values_keep_order_and_bounds(
    correct: Correction, p_values: list[float], data: st.DataObject
) -> None:
    given_values = np.array(p_values, np.float64)
    before, corrected = given_values.copy(), correct(given_values)
    assert (given_values == before).all()
    assert (corrected >= given_values * (1.0 - 1e-12)).all()
    assert (corrected <= 1.0).all()
    assert (np.diff(corrected[np.argsort(given_values)]) >= 0.0).all()
    order = np.array(data.draw(st.permutations(range(len(p_values)))), np.int64)
    np.testing.assert_array_equal(correct(given_values[order]), corrected[order])


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
def test_a_comparison_that_was_none_counts_for_nothing(correct: Correction) -> None:
    with_nan = correct(np.array([math.nan, *P_VALUES[:2], math.nan, *P_VALUES[2:]]))
    assert np.isnan(with_nan[[0, 3]]).all()
    np.testing.assert_array_equal(with_nan[[1, 2, 4, 5, 6]], correct(np.array(P_VALUES)))
    assert np.isnan(correct(np.full(3, math.nan))).all()
    assert correct(np.zeros(0)).tolist() == []


def test_an_effect_size_is_the_mean_in_standard_deviations() -> None:
    values = np.random.default_rng(1).normal(0.02, 0.1, 225)
    size = effect_size(values.mean(), stats.sem(values), 225)
    assert size == pytest.approx(values.mean() / values.std(ddof=1), rel=1e-12)


def test_effect_sizes_without_spread_or_without_values() -> None:
    assert effect_size(0.0, 0.0, 10) == 0.0
    assert math.isnan(effect_size(0.1, 0.0, 10))
    assert math.isnan(effect_size(0.1, math.nan, 10))
    assert math.isnan(effect_size(0.1, 0.1, 1))


@pytest.mark.parametrize("count", [30, 50, 225, 1000, 100_000])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("level", [0.05, 0.01])
def test_the_detectable_difference_is_found_as_often_as_asked(level: float, power: float, count: int) -> None:
    standard_error = 0.013
    shift = detectable_difference(standard_error, count, power, level) / standard_error
    critical = stats.t.ppf(1.0 - level / 2.0, count - 1)
    actual = stats.nct.sf(critical, count - 1, shift) + stats.nct.cdf(-critical, count - 1, shift)
    assert actual == pytest.approx(power, abs=0.02)


def test_two_queries_have_a_size_and_a_detectable_difference() -> None:
    assert effect_size(0.1, 0.2, 2) == pytest.approx(0.5 / math.sqrt(2))
    assert detectable_difference(0.2, 2) == pytest.approx(0.2 * (stats.t.ppf(0.975, 1) + stats.t.ppf(0.8, 1)))


def test_fewer_than_two_queries_detect_nothing() -> None:
    assert math.isnan(detectable_difference(0.1, 1))
    assert math.isnan(detectable_difference(math.nan, 10))
    assert math.isnan(detectable_difference(0.0, 10))  # equal differences tell nothing about their spread
    with pytest.raises(ValueError, match="no quantile"):
        detectable_difference(0.1, 10, power=1.0)
