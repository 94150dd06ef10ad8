"""Agreement of a judge: SciPy and plain enumeration say what is right."""

import math
from fractions import Fraction
from itertools import combinations
from statistics import variance

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rankbeam.transforms.kernels.statistics.agreement import (
    mcnemar_p_value,
    pair_agreement,
    value_variance,
    wilson_interval,
)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("count", [1, 8, 24, 1000])
def test_wilsons_interval_is_that_of_scipy(count: int, confidence: float) -> None:
    for successes in sorted({0, 1, count // 3, count - 1, count}):
        expected = binomtest(successes, count).proportion_ci(confidence, method="wilson")
        assert wilson_interval(successes, count, confidence) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilsons_interval_stays_in_its_range_and_is_unknown_without_items() -> None:
    assert wilson_interval(0, 24)[0] == 0.0
    assert wilson_interval(24, 24)[1] == 1.0
    assert all(map(math.isnan, wilson_interval(0, 0)))


@given(only_before=st.integers(0, 40), only_after=st.integers(0, 40))
def test_mcnemars_test_is_that_of_a_fair_coin(only_before: int, only_after: int) -> None:
    changed = only_before + only_after
    expected = binomtest(only_before, changed).pvalue if changed else 1.0
    assert mcnemar_p_value(only_before, only_after) == pytest.approx(expected, rel=1e-9)
    assert mcnemar_p_value(only_before, only_after) == mcnemar_p_value(only_after, only_before)


@given(values=st.lists(st.sampled_from([Fraction(sixths, 6) for sixths in range(7)]), min_size=2, max_size=5))
def test_the_variance_of_an_items_values_is_the_mean_squared_difference_of_pairs_halved(values: list[Fraction]) -> None:
    squares = [(one - other) ** 2 / 2 for one, other in combinations(values, 2)]
    assert value_variance(values) == sum(squares) / len(squares)
    assert float(value_variance(values)) == pytest.approx(variance(map(float, values)), abs=1e-12)


@given(verdicts=st.lists(st.sampled_from("abc"), min_size=2, max_size=5))
def test_agreement_is_the_share_of_equal_pairs(verdicts: list[str]) -> None:
    equal = [one == other for one, other in combinations(verdicts, 2)]
    assert pair_agreement(verdicts) == Fraction(sum(equal), len(equal))
