"""Prediction-powered estimates: ppi_py's digits in its convention, ours, and edges."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.statistics import ppi
from rankbeam.transforms.kernels.statistics.intervals import share_interval
from rankbeam.transforms.kernels.statistics.ppi import LabelledSample, PpiEstimate

Z = NormalDist().inv_cdf(0.975)


def _sample(labels: list[float], judged: list[float], others: list[float]) -> LabelledSample:
    return LabelledSample.of(*(np.array(item, np.float64) for item in (labels, judged, others)))


SHARES = _sample(
    [1, 0, 1, 1, 0, 1, 0, 1], [1, 0, 1, 1, 1, 1, 0, 1], [1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0]
)
GRADES = _sample(
    [0.8, 0.5, 0.9, 0.4, 0.7, 0.6],
    [0.9, 0.6, 0.85, 0.55, 0.8, 0.7],
    [0.7, 0.9, 0.65, 0.8, 0.5, 0.95, 0.6, 0.75, 0.85, 0.7],
)
DIFFERENCES = LabelledSample.of(
    np.array([1, 0.5, 1, 0, 0.5, 1, 1, 0]) - np.array([0.5, 0.5, 0, 0, 0.5, 1, 0.5, 0]),
    np.array([1, 0.75, 1, 0.25, 0.5, 1, 0.75, 0]) - np.array([0.75, 0.5, 0.25, 0, 0.75, 1, 0.5, 0.25]),
    np.array([0.75, 0.25, 0, 0, 0.75, 1, 0.5, 0.75, 0.5, 1, 0.75, 0])
    - np.array([0.5, 0.25, 0, 0, 0.5, 0.75, 0.5, 0.75, 0.5, 1, 0.5, 0]),
)


@pytest.mark.parametrize(
    ("sample", "power", "mean", "error"),
    [
        (SHARES, 0.0, 0.625, 0.1711632992),
        (SHARES, 1.0, 0.525, 0.1582620454),
        (SHARES, None, 0.5756578947, 0.1360081516),
        (GRADES, 1.0, 0.6566666667, 0.0488686827),
        (GRADES, None, 0.6547782875, 0.0466992605),
        (DIFFERENCES, 0.0, 0.25, 0.125),
        (DIFFERENCES, None, 0.1770833333, 0.0830344031),
    ],
)
def test_means_and_errors_equal_ppi_py(sample: LabelledSample, power: float | None, mean: float, error: float) -> None:
    result = PpiEstimate(sample, sample.power if power is None else power, ddof=0)
    assert result.mean == pytest.approx(mean, abs=6e-11)
    assert result.standard_error == pytest.approx(error, abs=6e-11)


def test_powers_and_normal_intervals_equal_ppi_py() -> None:
    assert SHARES.power == pytest.approx(0.4934210526, abs=6e-11)
    assert GRADES.power == pytest.approx(0.7167431193, abs=6e-11)
    assert DIFFERENCES.power == 1.0
    result = PpiEstimate(SHARES, SHARES.power, ddof=0)
    ends = (result.mean - Z * result.standard_error, result.mean + Z * result.standard_error)
    assert ends == pytest.approx((0.3090868160, 0.8422289735), abs=6e-11)


def test_without_use_of_the_judge_the_estimate_is_that_of_labels_alone() -> None:
    for sample in (
        _sample([1, 0, 1], [1, 0, 1], []),
        _sample([1, 0, 1], [1, 1, 1], [1, 1]),
        _sample([1, 0, 1, 0], [0, 1, 0, 1], [0, 1]),
    ):
        result = ppi.estimate(sample)
        assert (result.power, result.mean) == (0.0, sample.labels.mean)
        assert result.effective_labels == pytest.approx(sample.labels.count)


def test_equal_labels_have_the_exact_interval_of_a_share() -> None:
    result = ppi.estimate(_sample([1.0] * 20, [1.0] * 19 + [0.0], [1.0, 0.0] * 50))
    low, high = share_interval(20, 20)
    assert result.interval() == pytest.approx((low, high))
    halves = _sample([0.5] * 20, [0.5] * 20, [0.5] * 50)
    assert ppi.estimate(halves).interval() == pytest.approx((0.5 * low, 0.5 * low + 1.0 - low))
    wide = ppi.estimate(halves, -1.0, 2.0)
    assert wide.interval() == pytest.approx((0.5 * low - (1.0 - low), 0.5 * low + 2.0 * (1.0 - low)))


def test_one_label_has_no_interval() -> None:
    assert all(math.isnan(end) for end in ppi.estimate(_sample([1.0], [1.0], [1.0, 0.0])).interval())


def test_one_stratum_is_the_plain_estimate() -> None:
    result, plain = ppi.stratified_estimate([GRADES]), ppi.estimate(GRADES)
    assert result.mean == pytest.approx(plain.mean)
    assert result.standard_error == pytest.approx(plain.standard_error)
    assert result.degrees == pytest.approx(GRADES.labels.count - 1)
    assert result.interval() == pytest.approx(plain.interval())


def test_strata_are_added_by_their_shares_as_in_plain_python() -> None:
    rng = np.random.default_rng(5)
    strata = [(8, 92, 0.9), (30, 370, 0.6), (5, 20, 0.3), (5, 0, 0.5), (6, 1, 0.5)]  # of one query, no spread is known
    samples, sizes = [], [count + others for count, others, _ in strata]
    for count, others, truth in strata:
        labels, more = (rng.binomial(4, truth, size) / 4 for size in (count, others))
        judged = np.clip(labels + rng.choice([-0.25, 0.0, 0.25], count), 0, 1)
        samples.append((labels, judged, np.clip(more + rng.choice([-0.25, 0.0, 0.25], others), 0, 1)))
    result = ppi.stratified_estimate([LabelledSample.of(*sample) for sample in samples])
    power, mean, squared, below = result.power, 0.0, 0.0, 0.0
    for (labels, judged, others), size in zip(samples, sizes, strict=True):
        share, used = size / sum(sizes), power if len(others) > 1 else 0.0
        residuals = labels - used * judged
        mean += share * (residuals.mean() + (used * others.mean() if used else 0.0))
        part = residuals.var(ddof=1) / len(labels) + (used**2 * others.var(ddof=1) / len(others) if used else 0.0)
        squared += share**2 * part
        below += (share**2 * part) ** 2 / (len(labels) - 1)
    assert 0.0 < power <= 1.0
    assert result.mean == pytest.approx(mean, abs=1e-12)
    assert result.standard_error == pytest.approx(math.sqrt(squared), abs=1e-12)
    assert result.degrees == pytest.approx(squared**2 / below, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("accuracy", [0.7, 0.85, 0.95])
@pytest.mark.parametrize("truths", [(0.6, 0.6, 0.6), (0.98, 0.9, 0.8), (0.99, 0.9, 0.4)])
def test_intervals_over_strata_hold_the_truth(accuracy: float, truths: tuple[float, ...]) -> None:
    rng, counts, sizes, covered, samples = np.random.default_rng(3), (30, 15, 5), (640, 320, 40), 0, 400
    truth = sum(size * one for size, one in zip(sizes, truths, strict=True)) / sum(sizes)
    for _ in range(samples):
        strata = []
        for count, size, one in zip(counts, sizes, truths, strict=True):
            human = rng.random(size) < one
            judge = np.where(rng.random(size) < accuracy, human, ~human)
            values = human.astype(float), judge.astype(float)
            strata.append(LabelledSample.of(values[0][:count], values[1][:count], values[1][count:]))
        low, high = ppi.stratified_estimate(strata).interval()
        covered += low <= truth <= high
    assert covered / samples >= 0.93


_UNIT = st.floats(0.0, 1.0, allow_nan=False).map(lambda value: round(value, 3))


@given(
    st.lists(st.tuples(_UNIT, _UNIT), min_size=2, max_size=30), st.lists(_UNIT, max_size=30), st.sampled_from([0, 1])
)
def test_intervals_lie_in_the_range_and_hold_the_mean(
    pairs: list[tuple[float, float]], others: list[float], low: int
) -> None:
    labels, judged = (np.array(item) for item in zip(*pairs, strict=True))
    result = ppi.estimate(LabelledSample.of(labels, judged, np.array(others)), -float(low), 1.0)
    least, most = result.interval()
    assert least <= result.mean + 1e-12
    assert result.mean - 1e-12 <= most
    assert 0.0 <= result.power <= 1.0
    assert most - least > 0.0
    assert result.effective_labels >= 0.0
