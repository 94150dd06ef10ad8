"""Joint intervals and the subset of the best: by simulation, against Student's interval, and at the edges."""

import math
import statistics
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import scipy.stats

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.statistics.estimates import Estimate
from rankbeam.transforms.kernels.statistics.selection import joint_intervals, may_be_best


class Sample(NamedTuple):
    """Bootstrap of k configurations over the same queries."""

    means: FloatArray
    replicates: FloatArray
    standard_errors: FloatArray


def bootstrap(values: FloatArray, rng: np.random.Generator, resamples: int = 500) -> Sample:
    """The bootstrap of values float64[n, k]."""
    count = len(values)
    weights = rng.multinomial(count, np.full(count, 1.0 / count), resamples) / count
    return Sample(values.mean(axis=0), (weights @ values).T, values.std(axis=0, ddof=1) / math.sqrt(count))


def joint(sample: Sample, count: int, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Joint intervals of means of a metric without an upper bound, of whose values the highest is 1."""
    estimates = [Estimate(count, mean, error, ceiling=None) for mean, error in zip(*sample[::2], strict=True)]
    return joint_intervals(estimates, sample.replicates, confidence)


def samples(trials: int, count: int, true_means: list[float], seed: int, correlation: float = 0.6) -> Iterator[Sample]:
    """Bootstraps of simulated scores with a spread of 0.2, fifty data sets for each set of weights."""
    rng = np.random.default_rng([seed, count])
    k, at_once = len(true_means), 50
    for _ in range(trials // at_once):
        shared, own = rng.normal(size=(count, at_once, 1)), rng.normal(size=(count, at_once, k))
        noise = math.sqrt(correlation) * shared + math.sqrt(1.0 - correlation) * own
        whole = bootstrap((np.array(true_means) + 0.2 * noise).reshape(count, -1), rng)
        for trial in range(at_once):
            yield Sample(*(part[trial * k : (trial + 1) * k] for part in whole))


@pytest.mark.campaign
@pytest.mark.parametrize(("count", "least", "most"), [(60, 0.93, 0.975), (10, 0.92, 1.0)])
def test_all_intervals_cover_at_once_as_often_as_they_say(count: int, least: float, most: float) -> None:
    true_means = np.array([0.3, 0.3, 0.31, 0.4, 0.5])
    covered = covered_best = 0
    trials = 1500
    for sample in samples(trials, count, true_means.tolist(), seed=1):
        low, high = joint(sample, count)
        covers = (low <= true_means) & (true_means <= high)
        covered += bool(covers.all())
        covered_best += bool(covers[np.argmax(sample.means)])
    assert least <= covered / trials <= most
    assert covered_best >= covered


def test_of_one_configuration_the_joint_interval_is_its_own() -> None:
    rng = np.random.default_rng(2)
    for count in (8, 50):
        sample = bootstrap(rng.normal(0.4, 0.1, (count, 1)), rng, resamples=20_000)
        low, high = joint(sample, count)
        expected = Estimate(count, sample.means[0], sample.standard_errors[0]).interval()
        assert (low[0], high[0]) == pytest.approx(expected, rel=0.06)


def test_more_configurations_and_more_confidence_widen_intervals() -> None:
    rng = np.random.default_rng(3)
    sample = bootstrap(rng.normal(0.4, 0.2, (50, 20)), rng)

    def half_width(k: int, confidence: float) -> float:
        low, high = joint(Sample(*(part[:k] for part in sample)), 50, confidence)
        return float(high[0] - low[0])

    assert half_width(1, 0.95) < half_width(5, 0.95) < half_width(20, 0.95) < half_width(20, 0.99)


def test_intervals_of_what_is_missing_or_does_not_vary() -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(0.4, 0.2, (50, 2))
    plain = bootstrap(values, rng)
    expected = joint(plain, 50)
    means, replicates, errors = (np.concatenate((part, part, part)) for part in plain)
    means[2], replicates[2], errors[2] = 0.7, 0.7, 0.0  # no spread
    means[3] = math.nan
    replicates[4] = math.nan
    errors[5] = math.nan
    low, high = joint(Sample(means, replicates, errors), 50)
    assert np.isnan(low[2:]).all()
    assert np.isnan(high[2:]).all()
    # One of the three that have a mean has no spread, and a third of the risk.
    wider = joint(plain, 50, 0.95 + 0.05 / 3)
    assert low[:2] == pytest.approx(wider[0], rel=1e-12)
    assert high[:2] == pytest.approx(wider[1], rel=1e-12)
    assert (low[:2] < expected[0]).all()


def test_one_without_spread_is_not_certain() -> None:
    rng = np.random.default_rng(4)
    values = np.column_stack([rng.beta(2, 2, (50, 2)), np.ones(50)])
    sample = bootstrap(values, rng)
    estimates = [
        Estimate(50, mean, error, successes=successes)
        for mean, error, successes in zip(*sample[::2], [None, None, 50], strict=True)
    ]
    low, high = joint_intervals(estimates, sample.replicates)
    assert (low[2], high[2]) == (pytest.approx((0.05 / 6) ** (1 / 50)), 1.0)
    all_equal = [replace(estimate, standard_error=0.0, successes=50, mean=1.0) for estimate in estimates]
    low, high = joint_intervals(all_equal, np.ones((3, 500)))
    assert low.tolist() == pytest.approx([(0.05 / 6) ** (1 / 50)] * 3)
    assert high.tolist() == [1.0] * 3


def test_columns_with_nan_are_left_out() -> None:
    rng = np.random.default_rng(5)
    sample = bootstrap(rng.normal(0.4, 0.2, (50, 3)), rng)
    holes = sample.replicates.copy()
    holes[0, 7], holes[2, 11] = math.nan, math.nan
    fewer = sample._replace(replicates=np.delete(sample.replicates, [7, 11], axis=1))
    pierced = sample._replace(replicates=holes)
    np.testing.assert_array_equal(joint(pierced, 50), joint(fewer, 50))
    np.testing.assert_array_equal(may_be_best(sample.means, holes, 50), may_be_best(sample.means, fewer.replicates, 50))


def test_too_little_tells_nothing() -> None:
    means, replicates, errors = np.array([0.1, 0.9]), np.full((2, 5), 0.5), np.full(2, 0.01)
    none = np.full((2, 5), math.nan)
    assert np.isnan(joint(Sample(means, replicates, errors), 1)).all()
    assert np.isnan(joint(Sample(means, none, errors), 9)).all()
    assert may_be_best(means, replicates, 1).tolist() == [True, True]
    assert may_be_best(means, replicates[:, :1], 9).tolist() == [True, True]
    assert may_be_best(means, none, 9).tolist() == [False, False]
    assert may_be_best(np.zeros(0), np.zeros((0, 5)), 9).tolist() == []
    for confidence in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="a confidence"):
            may_be_best(means, replicates, 9, confidence)
        with pytest.raises(ValueError, match="a confidence"):
            joint(Sample(means, replicates, errors), 9, confidence)


@pytest.mark.campaign
@pytest.mark.parametrize("count", [10, 60])
def test_the_best_is_kept_as_often_as_said_when_all_are_equal(count: int) -> None:
    trials = 800
    shares = np.mean([may_be_best(s.means, s.replicates, count) for s in samples(trials, count, [0.3] * 5, 6)], axis=0)
    # The level is 0.95 for each of them; 0.93 leaves three standard deviations of the simulation.
    assert (shares >= 0.93).all()
    assert (shares <= 0.98).all()


def test_a_clearly_worse_one_is_dropped_and_the_best_kept() -> None:
    # Differences spread by 0.2 · √0.8 = 0.18: the worst is eight standard errors behind, the second is half of one.
    result = np.array([may_be_best(s.means, s.replicates, 60) for s in samples(500, 60, [0.5, 0.49, 0.3], 7)])
    shares = result.mean(axis=0)
    assert shares[0] >= 0.95
    assert shares[1] >= 0.6
    assert shares[2] <= 0.001


def plainly_may_be_best(sample: Sample, n: int) -> list[bool]:
    """`may_be_best` without NumPy, where all differences vary."""

    def is_kept(i: int) -> bool:
        others = [j for j in range(len(sample.means)) if j != i]
        gain = {j: sample.means[j] - sample.means[i] for j in others}
        differences = {j: (sample.replicates[j] - sample.replicates[i]).tolist() for j in others}
        error = {j: statistics.pstdev(differences[j]) * math.sqrt(n / (n - 1)) for j in others}
        highest = [max((differences[j][b] - gain[j]) / error[j] for j in others) for b in range(200)]
        tail = scipy.stats.norm.sf(np.quantile(highest, 0.95) * math.sqrt(n / (n - 1)))
        lead = max(gain[j] / error[j] for j in others)
        return lead <= 0 or scipy.stats.t.sf(lead, n - 1) >= tail

    return [is_kept(i) for i in range(len(sample.means))]


@pytest.mark.long
@pytest.mark.parametrize("count", [4, 40])
def test_the_subset_is_that_of_plain_python(count: int) -> None:
    for seed in range(40):
        rng = np.random.default_rng([seed, count])
        sample = bootstrap(rng.normal([0.4, 0.5, 0.9 - 0.01 * count, 0.3], 0.2, (count, 4)), rng, resamples=200)
        shifted = sample._replace(replicates=sample.replicates + rng.normal(0.0, 0.1, (4, 1)))
        for some in (sample, shifted):
            assert may_be_best(some.means, some.replicates, count).tolist() == plainly_may_be_best(some, count)


@pytest.mark.long
@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0])
def test_the_subset_of_many_is_that_of_plain_python(spread: float) -> None:
    rng = np.random.default_rng(4)
    sample = bootstrap(rng.normal(rng.uniform(0.5, 0.5 + spread, 90), 0.2, (40, 90)), rng, resamples=200)
    assert may_be_best(sample.means, sample.replicates, 40).tolist() == plainly_may_be_best(sample, 40)


def test_the_highest_mean_may_always_be_best() -> None:
    for sample in samples(200, 10, [0.3, 0.5, 0.5, 0.1], 8):
        assert may_be_best(sample.means, sample.replicates, 10, 0.05)[np.argmax(sample.means)]
    assert may_be_best(np.array([0.2]), np.random.default_rng(1).random((1, 50)), 10).tolist() == [True]


def test_one_that_is_always_lower_by_the_same_is_told_from_the_best_for_certain() -> None:
    rng = np.random.default_rng(9)
    values = rng.normal(0.4, 0.2, (50, 1))
    sample = bootstrap(np.concatenate((values, values - 0.001, values, values + 0.1 - 0.1), axis=1), rng)
    assert may_be_best(sample.means, sample.replicates, 50).tolist() == [True, False, True, True]


@pytest.mark.parametrize(("count", "expected"), [(4, False), (5, True), (50, True)])
def test_a_few_queries_of_equal_difference_leave_a_doubt(count: int, expected: bool) -> None:
    # By the sign test one chance in 2^count that all differences have this sign: 1/16 is too much, 1/32 is not.
    means = np.array([1.0, 0.0])
    assert may_be_best(means, np.tile(means[:, np.newaxis], 100), count).tolist() == [True, not expected]


def test_rounding_of_replicates_is_no_spread() -> None:
    rounding = np.random.default_rng(1).integers(-1, 2, (2, 100)) * 2.0**-53
    means = np.array([0.75, 0.5])
    assert may_be_best(means, means[:, np.newaxis] + rounding, 3).tolist() == [True, True]


def test_twins_do_not_move_the_others() -> None:
    rng = np.random.default_rng(10)
    for seed in range(20):
        values = np.random.default_rng(seed).normal([0.4, 0.42, 0.36], 0.2, (50, 3))
        sample = bootstrap(values, rng)
        twice = may_be_best(np.tile(sample.means, 2), np.tile(sample.replicates, (2, 1)), 50)
        assert twice.tolist() == may_be_best(sample.means, sample.replicates, 50).tolist() * 2


def test_one_without_a_mean_or_replicates_takes_no_part() -> None:
    rng = np.random.default_rng(11)
    sample = bootstrap(rng.normal([0.4, 0.45, 0.2], 0.2, (50, 3)), rng)
    means = np.array([*sample.means, math.nan, 0.9])
    replicates = np.concatenate((sample.replicates, sample.replicates[:1], np.full((1, 500), math.nan)))
    expected = may_be_best(sample.means, sample.replicates, 50).tolist()
    assert may_be_best(means, replicates, 50).tolist() == [*expected, False, False]


def test_the_order_of_configurations_does_not_matter() -> None:
    rng = np.random.default_rng(12)
    sample = bootstrap(rng.normal(np.linspace(0.3, 0.5, 30), 0.2, (40, 30)), rng)
    result, order = may_be_best(sample.means, sample.replicates, 40), rng.permutation(30)
    assert 0 < result.sum() < 30
    np.testing.assert_array_equal(may_be_best(sample.means[order], sample.replicates[order], 40), result[order])
