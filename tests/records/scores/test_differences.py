"""The state of the differences of two configurations, and what is drawn from it: exact expectations."""

from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from rankbeam.transforms.kernels.statistics.estimates import DifferenceEstimate
from rankbeam.transforms.kernels.statistics.moments import ClusterStatistics
from rankbeam.transforms.records.metrics.evaluation import Statistics
from rankbeam.transforms.records.metrics.panels import Range
from rankbeam.transforms.records.scores.aggregates import PairedAggregate
from rankbeam.transforms.records.scores.comparisons import detectable, queries_for
from rankbeam.transforms.records.scores.rows import Comparison

SHARE, SIGNED, UNBOUNDED = Range(0.0, 1.0), Range(-1.0, 1.0), Range(0.0, None)
NONE = np.empty((1, 0))
COUNT = 200
DRAWN = np.random.default_rng(2).normal(0.02, 0.2, COUNT).round(3)


def state(differences: np.ndarray, unpaired: int = 0, first: int = 0) -> PairedAggregate:
    hashes = np.arange(first + 1, first + 1 + len(differences), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    units = np.rint(differences * 2.0**32).astype(np.int64)
    return PairedAggregate.of(differences[:, None], hashes, units[:, None], unpaired)


def test_the_seed_draws_the_signs_of_the_randomisation_test() -> None:
    whole = state(DRAWN)
    results = {seed: whole.result([SHARE], NONE, Statistics(seed=seed))[0].p_value for seed in (0, 3)}
    assert results == {seed: float(whole.blocks.test(seed).p_values[0]) for seed in results}
    assert results[0] != results[3]


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_intervals_hold_with_the_confidence_asked_for(confidence: float) -> None:
    (result,) = state(DRAWN).result([UNBOUNDED], NONE, Statistics(confidence=confidence))
    expected = stats.t.interval(confidence, COUNT - 1, DRAWN.mean(), stats.sem(DRAWN))
    assert (result.ci_low, result.ci_high) == pytest.approx(expected)


def test_the_columns_of_a_comparison() -> None:
    values = np.array([0.5, 0.25, -0.25, 0.0])
    (result,) = state(values, unpaired=3).result([SHARE], NONE, Statistics())
    shown = asdict(result)
    assert {name: shown[name] for name in ("difference", "queries", "unpaired", "wins", "ties", "losses")} == {
        "difference": 0.125, "queries": 4, "unpaired": 3, "wins": 2, "ties": 1, "losses": 1,
    }  # fmt: skip
    assert result.std_error == pytest.approx(stats.sem(values))
    assert result.t_p_value == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue)
    assert result.effect_size == pytest.approx(0.125 / values.std(ddof=1))
    assert result.p_value == 0.75  # of 8 sign vectors, 6 reach a sum of 0.5
    assert result.detectable == pytest.approx((stats.t.ppf(0.975, 3) + stats.t.ppf(0.8, 3)) * stats.sem(values))


def test_the_number_of_clusters_is_null_without_them_and_sets_the_tests_with_them() -> None:
    values = state(np.array([0.5, 0.25, -0.25, 0.0]))
    (plain,) = values.result([SHARE], NONE, Statistics())
    (result,) = values.result([SHARE], NONE, Statistics(), [ClusterStatistics(2.5, 0.2, -0.25, 0.375, 2)])
    assert (plain.clusters, result.clusters, result.queries, result.std_error) == (None, 2.5, 4, 0.2)
    assert result.t_p_value == pytest.approx(2.0 * stats.t.sf(0.125 / 0.2, 1.5))
    assert result.effect_size == plain.effect_size  # relates to the spread of queries


@pytest.mark.parametrize(("ends", "width"), [(SHARE, 1.0), (SIGNED, 2.0), (UNBOUNDED, None)])
def test_the_range_of_a_metric_bounds_its_differences(ends: Range, width: float | None) -> None:
    (estimate,) = state(np.array([0.5, -0.25, 0.0])).estimates([ends])
    assert estimate == DifferenceEstimate(3, 0.25 / 3, estimate.standard_error, -0.25, 0.5, width, events=2)


def test_merging_adds_what_each_has() -> None:
    one, other = state(DRAWN[:80], unpaired=1), state(DRAWN[80:], unpaired=2, first=80)
    assert one.merge(other) == state(DRAWN, unpaired=3)
    assert one.merge(state(np.empty(0))) == one


@pytest.mark.parametrize(("lost", "method"), [(6, "enumerated"), (24, "sampled"), (16, "tilted"), (0, "tilted")])
def test_the_method_of_a_p_value_is_named_and_small_ones_are_as_exact_as_others(lost: int, method: str) -> None:
    count = 16 if method == "enumerated" else 64
    values = np.where(np.arange(count) < lost, -0.5, 0.5)
    (result,) = state(values).result([SHARE], NONE, Statistics())
    share = min(1.0, 2.0 * stats.binom.cdf(lost, count, 0.5))
    expected = share if method == "enumerated" else (1.0 + 100_000 * share) / 100_001
    assert asdict(result)["p_method"] == method
    assert result.p_value == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("differing", [9, 10])
def test_few_queries_that_differ_do_not_say_what_can_be_detected(differing: int) -> None:
    known = {"metric": "RR", "difference": 0.01, "std_error": 0.01, "queries": 46, "wins": 1, "losses": differing - 1}
    row = Comparison.of(known)
    is_known = differing == 10
    assert (detectable(row, 0.05) is not None) == is_known
    assert (queries_for(row, 0.05, 0.05) is not None) == is_known
