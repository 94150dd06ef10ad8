"""Quantiles against SciPy, intervals by simulation."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from rankbeam.transforms.kernels.statistics import intervals
from rankbeam.transforms.kernels.statistics.intervals import (
    incomplete_beta,
    share_interval,
    student_interval,
    student_p_value,
    student_t_quantile,
)
from rankbeam.transforms.kernels.statistics.moments import Moments

DEGREES = (1, 2, 3, 4, 5, 9, 10, 29, 30, 49, 224, 999, 10_000, 100_000, 10**6, 10**9, 10**13, 10**18)


@pytest.mark.parametrize("n", [1, 20, 99, 100, 101, 400])
def test_the_beta_function_at_one_half_agrees_with_its_exact_value(n: int) -> None:
    exact = Fraction(4**n * math.factorial(n - 1) * math.factorial(n), math.factorial(2 * n))  # B(n, 1/2)
    assert intervals._log_beta(n, 0.5) == pytest.approx(math.log(exact), abs=2e-15 if n >= 100 else 2e-13)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("probability", [0.55, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.9995, 0.999995])
def test_quantiles_agree_with_scipy(probability: float, degrees: int) -> None:
    expected = stats.t.ppf(probability, degrees)
    assert student_t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9, abs=0)
    assert student_t_quantile(1.0 - probability, degrees) == pytest.approx(-expected, rel=1e-9, abs=0)


@pytest.mark.parametrize("degrees", [4, 1000])
@pytest.mark.parametrize("probability", [1e-20, 1e-12, 1.0 - 1e-12])
def test_quantiles_far_out_agree_with_scipy(probability: float, degrees: int) -> None:
    expected = stats.t.ppf(probability, degrees)
    assert student_t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-9, abs=0)


# SciPy itself is off by 10^-9 of the value here; for one and two degrees of freedom there is a formula.
@pytest.mark.parametrize("probability", [0.4, 0.4999, 0.5000001, 0.501, 0.6])
def test_quantiles_near_the_middle_agree_with_their_formula(probability: float) -> None:
    of_one = math.tan(math.pi * (probability - 0.5))
    of_two = (2.0 * probability - 1.0) / math.sqrt(2.0 * probability * (1.0 - probability))
    assert student_t_quantile(probability, 1) == pytest.approx(of_one, rel=0, abs=1e-9)
    assert student_t_quantile(probability, 2) == pytest.approx(of_two, rel=0, abs=1e-9)


@pytest.mark.parametrize("degrees", DEGREES)
def test_quantiles_are_symmetric_around_0(degrees: int) -> None:
    assert student_t_quantile(0.5, degrees) == 0.0
    assert student_t_quantile(0.5 + 2.0**-20, degrees) == -student_t_quantile(0.5 - 2.0**-20, degrees) > 0.0


@pytest.mark.parametrize(("probability", "degrees"), [(0.0, 5), (1.0, 5), (-0.1, 5), (1.5, 5), (math.nan, 5), (0.9, 0)])
def test_arguments_out_of_range_are_refused(probability: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        student_t_quantile(probability, degrees)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_an_interval_agrees_with_scipy(confidence: float) -> None:
    expected = stats.t.interval(confidence, 49, loc=0.4, scale=0.03)
    assert student_interval(0.4, 0.03, 50, confidence) == pytest.approx(expected, rel=1e-12)


def test_too_few_values_give_an_unknown_interval() -> None:
    assert all(map(math.isnan, student_interval(0.5, math.nan, 50)))
    assert all(map(math.isnan, student_interval(0.5, 0.1, 1)))


@pytest.mark.parametrize("count", [3, 10, 40])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_cover_the_true_mean_as_often_as_they_say(confidence: float, count: int) -> None:
    trials, mean = 2000, 0.3
    samples = np.random.default_rng([7, count]).normal(mean, 0.2, (count, trials))
    moments = Moments.of(samples)
    covered = 0
    for sample_mean, standard_error in zip(moments.means(), moments.standard_errors(), strict=True):
        low, high = student_interval(sample_mean, standard_error, count, confidence)
        covered += low <= mean <= high
    # Four standard deviations of the binomial distribution; the samples are fixed.
    tolerance = 4.0 * math.sqrt(confidence * (1.0 - confidence) / trials)
    assert covered / trials == pytest.approx(confidence, abs=tolerance)


@pytest.mark.parametrize("count", [2, 3, 10, 50, 225, 1000, 100_000])
@pytest.mark.parametrize("t", [0.0, 0.001, 0.5, -1.0, 1.96, -3.0, 8.0, 40.0])
def test_p_values_agree_with_scipy(t: float, count: int) -> None:
    standard_error = 0.03
    expected = 2.0 * stats.t.sf(abs(t), count - 1)
    assert student_p_value(t * standard_error, standard_error, count) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_a_p_value_is_that_of_the_paired_test() -> None:
    difference = np.random.default_rng(8).normal(0.01, 0.1, (225, 1))
    moments = Moments.of(difference)
    p_value = student_p_value(moments.means()[0], moments.standard_errors()[0], moments.count)
    assert p_value == pytest.approx(stats.ttest_1samp(difference[:, 0], 0.0).pvalue, rel=1e-9)


@pytest.mark.parametrize(
    ("mean", "standard_error", "count", "expected"),
    [(0.0, 0.0, 5, 1.0), (-0.2, 0.0, 5, 0.0), (0.2, 0.1, 1, math.nan), (0.2, math.nan, 5, math.nan)],
)
def test_p_values_without_spread_or_without_values(
    mean: float, standard_error: float, count: int, expected: float
) -> None:
    assert student_p_value(mean, standard_error, count) == pytest.approx(expected, abs=0, nan_ok=True)


@pytest.mark.parametrize("tail", [0.1, 0.025, 1e-4, 1e-12, 1e-60])
@pytest.mark.parametrize("count", [1, 2, 5, 20, 100, 2000, 1_000_000])
def test_intervals_of_shares_agree_with_scipy(count: int, tail: float) -> None:
    for successes in {0, 1, 2, count // 3, count - 1, count} & set(range(count + 1)):
        low, high = share_interval(successes, count, tail)
        for end, k in ((low, successes), (1.0 - high, count - successes)):
            # SciPy's own quantile gives up far out; its distribution function does not.
            if k and end > 1e-9:
                log_tail = stats.beta.logcdf(end, k, count - k + 1)
                assert log_tail == pytest.approx(math.log(tail), rel=1e-7, abs=1e-7 * k + 1e-6)
            assert end >= 0.0
            assert (end == 0.0) == (k == 0) or end < 1e-9


@pytest.mark.parametrize("count", [5, 20, 50])
def test_intervals_of_shares_hold_every_share_as_often_as_they_say(count: int) -> None:
    ends = np.array([share_interval(successes, count) for successes in range(count + 1)])
    for share in np.linspace(0.001, 0.999, 500):
        holds = (ends[:, 0] <= share) & (share <= ends[:, 1])
        assert stats.binom.pmf(np.arange(count + 1), count, share)[holds].sum() >= 0.95


@pytest.mark.parametrize(("x", "expected"), [(0.0, 0.0), (1.0, 1.0)])
def test_the_incomplete_beta_function_has_its_limits(x: float, expected: float) -> None:
    assert incomplete_beta(2.5, 0.5, x, 1.0 - x) == expected


def test_quantiles_are_found_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [0]

    def counted(a: float, b: float, x: float, y: float) -> float:
        steps[-1] += 1
        return incomplete_beta(a, b, x, y)

    monkeypatch.setattr(intervals, "incomplete_beta", counted)
    for probability in (0.6, 0.8, 0.975, 0.9995, 0.999995):
        for degrees in DEGREES:
            student_t_quantile.__wrapped__(probability, degrees)  # without its cache
            steps.append(0)
    assert max(steps) <= 12
    assert np.mean(steps) <= 5.0  # a bisection takes fifty
    del steps[:-1]
    for count in (5, 20, 2000):
        for successes in range(2, count, count // 5):
            intervals._beta_quantile.__wrapped__(0.025, successes, count - successes + 1)
            steps.append(0)
    assert max(steps) <= 12
