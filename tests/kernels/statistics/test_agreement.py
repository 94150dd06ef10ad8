"""Agreement of a judge: SciPy and plain enumeration say what is right."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rankbeam.transforms.kernels.statistics.agreement import (
    mcnemar_p_value,
    self_agreement,
    wilson_interval,
    within_variance,
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


@given(samples=st.lists(st.lists(st.floats(0, 1), max_size=4), max_size=5))
def test_within_item_variance_is_the_mean_squared_difference_of_pairs_halved(samples: list[list[float]]) -> None:
    repeated = [values for values in samples if len(values) > 1]
    found = within_variance([np.array(values) for values in samples])
    if not repeated:
        assert math.isnan(found)
        return
    by_pairs = [np.mean([(a - b) ** 2 / 2 for a, b in combinations(values, 2)]) for values in repeated]
    assert found == pytest.approx(float(np.mean(by_pairs)), abs=1e-12)


@given(verdicts=st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=5))
def test_self_agreement_is_the_share_of_equal_pairs(verdicts: list[list[str]]) -> None:
    repeated = [given for given in verdicts if len(given) > 1]
    found = self_agreement(verdicts)
    if not repeated:
        assert math.isnan(found)
        return
    by_pairs = [np.mean([a == b for a, b in combinations(given, 2)]) for given in repeated]
    assert found == pytest.approx(float(np.mean(by_pairs)), abs=1e-12)
    assert self_agreement([[one, one] for one in "abc"]) == 1.0
