"""Numbers of queries that a difference needs: published ones, and laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.pipelines.plan.detect import MEASURED
from rankbeam.transforms.kernels.statistics.corrections import detectable_difference
from rankbeam.transforms.kernels.statistics.sample_size import (
    design_effect,
    queries_needed,
    queries_needed_for_shares,
    with_samples,
)

NEEDED = {"AP": 360, "R@100": 652, "nDCG@10": 1171, "P@10": 1133, "Success@10": 2972, "RR@10": 3415}
SHARES = st.floats(0.01, 0.5)


def test_measured_spreads_need_these_queries() -> None:
    assert {name: queries_needed(0.02, deviation) for name, (_, deviation, _) in MEASURED.items()} == NEEDED


@given(st.floats(0.005, 0.5), st.floats(0.05, 0.6), st.floats(0.5, 0.95), st.floats(0.001, 0.2))
def test_the_number_is_the_smallest_that_detects_the_difference(
    difference: float, deviation: float, power: float, level: float
) -> None:
    n = queries_needed(difference, deviation, power, level)
    assert detectable_difference(deviation / math.sqrt(n), n, power, level) <= difference * (1 + 1e-12)
    if n > 2:
        before = detectable_difference(deviation / math.sqrt(n - 1), n - 1, power, level)
        assert before > difference * (1 - 1e-12)


@given(SHARES, SHARES)
def test_mcnemar_needs_no_more_than_the_t_test_at_the_largest_spread(difference: float, further: float) -> None:
    discordant = difference + further
    needed = queries_needed_for_shares(difference, discordant)
    assert needed <= queries_needed(difference, math.sqrt(discordant))
    assert needed >= queries_needed(difference, math.sqrt(discordant - difference**2))


def test_the_power_is_what_is_asked_for() -> None:
    """40,000 samples of normal differences, of as many queries as needed."""
    rng, n = np.random.default_rng(7), queries_needed(0.1, 0.25)
    samples = rng.normal(0.1, 0.25, (40_000, n))
    t = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / math.sqrt(n))
    from rankbeam.transforms.kernels.statistics.intervals import student_t_quantile

    assert np.mean(np.abs(t) > student_t_quantile(0.975, n - 1)) == pytest.approx(0.8, abs=0.01)


def test_clusters_and_samples() -> None:
    assert design_effect([1] * 15 + [5] * 10 + [47] * 5, 0.3) == pytest.approx(1 + (11310 / 300 - 1) * 0.3)
    assert with_samples(0.04, 0.01, 2, 2) == 0.04
    assert with_samples(0.04, 0.01, 4, 1) == pytest.approx(0.055)


@pytest.mark.parametrize("wrong", [(0.0, 0.1), (0.1, 0.1, 0.0), (0.1, 0.1, 0.8, 1.0), (-0.1, 0.1)])
def test_wrong_questions_are_refused(wrong: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="no sample detects"):
        queries_needed(*wrong)
    with pytest.raises(ValueError, match="discordant must be"):
        queries_needed_for_shares(0.3, 0.2)
