"""The state of some queries, and what is drawn from it: exact expectations."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rankbeam.transforms.kernels.statistics.estimates import Estimate
from rankbeam.transforms.kernels.statistics.moments import ClusterStatistics
from rankbeam.transforms.records.metrics.panels import Range
from rankbeam.transforms.records.scores.means import QueryAggregate, or_null
from rankbeam.transforms.records.scores.rows import MetricSummary
from rankbeam.transforms.records.scores.scored import ScoredPanel, Status

NAN = math.nan
SHARE, SIGNED, UNBOUNDED = Range(0.0, 1.0), Range(-1.0, 1.0), Range(0.0, None)
STATUS = np.array([Status.OK, Status.EMPTY, Status.FAILED, Status.MISSING, Status.UNDEFINED, Status.FAILED], np.int8)
VALUES = np.array([[0.75], [0.0], [NAN], [NAN], [NAN], [NAN]])
TIES = np.array([[[0.5], [0.0], [NAN], [NAN], [NAN], [NAN]], [[1.0], [0.25], [NAN], [NAN], [NAN], [NAN]]])
ALL = np.ones(6, np.bool_)
HASHES = np.arange(6, dtype=np.uint64)


def state(*values: float, failed: int = 0) -> QueryAggregate:
    status = np.array([Status.OK] * len(values) + [Status.FAILED] * failed, np.int8)
    column = np.array([*values, *[NAN] * failed])[:, None]
    return QueryAggregate.of(ScoredPanel(status, column), np.ones(len(status), np.bool_))


def test_every_status_is_counted_by_itself() -> None:
    state = QueryAggregate.of(ScoredPanel(STATUS, VALUES, TIES), ALL)
    assert (state.moments.count, state.empty, state.failed, state.missing, state.undefined) == (2, 1, 2, 1, 1)
    assert state.moments.means() == (0.375,)
    assert state.ties is not None
    assert [bound.means() for bound in state.ties] == [(0.25,), (0.625,)]


def test_only_the_chosen_queries_count() -> None:
    state = QueryAggregate.of(ScoredPanel(STATUS, VALUES, TIES), np.array([True, False, True, False, False, False]))
    assert (state.moments.count, state.empty, state.failed, state.missing, state.undefined) == (1, 0, 1, 0, 0)


def test_merging_adds_every_count() -> None:
    one = QueryAggregate.of(ScoredPanel(STATUS, VALUES, TIES), ALL, HASHES)
    both = one.merge(one)
    assert (both.moments.count, both.empty, both.failed, both.missing, both.undefined) == (4, 2, 4, 2, 2)
    assert both.fingerprints == (2 * one.fingerprints[0] % (1 << 64),)
    assert both.ties is not None
    assert [bound.totals() for bound in both.ties] == [(1.0,), (2.5,)]
    assert one.merge(state()).ties == one.ties == state().merge(one).ties


def test_fingerprints_add_modulo_two_to_the_64th() -> None:
    one, other = (replace(state(), fingerprints=values) for values in ((2**64 - 1, 2**63), (3, 2**63 - 1)))
    assert one.merge(other).fingerprints == (2, 2**64 - 1)


def test_values_are_equal_where_every_query_has_an_equal_value() -> None:
    panel = ScoredPanel(np.zeros(2, np.int8), np.array([[0.25], [0.75]]))
    other = ScoredPanel(np.zeros(2, np.int8), np.array([[0.75], [0.25]]))
    chosen = np.ones(2, np.bool_)
    one, same, swapped = (
        QueryAggregate.of(scored, chosen, HASHES[:2]).values_of(0) for scored in (panel, panel, other)
    )
    assert one == same
    assert one[:3] == swapped[:3]
    assert one != swapped
    assert QueryAggregate.of(panel, chosen).fingerprints == (0,)


@pytest.mark.parametrize(
    ("ends", "floor", "ceiling", "successes"),
    [(SHARE, 0.0, 1.0, 2), (SIGNED, -1.0, 1.0, None), (UNBOUNDED, 0.0, None, None)],
)
def test_what_intervals_are_drawn_from(ends: Range, floor: float, ceiling: float | None, successes: int | None) -> None:
    (estimate,) = state(0.0, 1.0, 1.0).estimates([ends])
    assert estimate == Estimate(3, 2 / 3, estimate.standard_error, floor, ceiling, 1.0, successes)
    assert estimate.standard_error == pytest.approx(1 / 3)


def test_by_clusters_an_interval_of_a_share_is_drawn_from_their_number_and_not_from_that_of_queries() -> None:
    queries, clusters = state(0.0, 1.0, 1.0, 0.0, 1.0), [ClusterStatistics(2.5, 0.3, 0.0, 1.0, 2)]
    (estimate,) = queries.estimates([SHARE], clusters)
    assert estimate == Estimate(2.5, 0.6, 0.3)
    ((by_cluster,), (by_query,)) = queries.result([SHARE], clusters=clusters), queries.result([SHARE])
    assert (by_cluster.ci_low, by_cluster.ci_high) == estimate.interval()
    assert by_cluster.ci_high - by_cluster.ci_low > by_query.ci_high - by_query.ci_low  # type: ignore[operator]


@pytest.mark.parametrize(
    ("ends", "lowest", "highest"), [(SHARE, 0.25, 0.75), (SIGNED, -0.25, 0.75), (UNBOUNDED, 0.25, None)]
)
def test_failed_queries_bound_the_mean_by_the_range_of_the_metric(
    ends: Range, lowest: float, highest: float | None
) -> None:
    (result,) = state(0.25, 0.75, failed=2).result([ends])
    assert (result.mean, result.lowest, result.highest) == (0.5, lowest, highest)


@pytest.mark.parametrize("ends", [SHARE, SIGNED, UNBOUNDED])
def test_without_failures_the_bounds_are_the_mean(ends: Range) -> None:
    (result,) = state(0.25, 0.75).result([ends])
    assert (result.mean, result.lowest, result.highest) == (0.5, 0.5, 0.5)


def test_where_all_failed_there_is_no_mean_but_a_range() -> None:
    assert state(failed=3).result([SIGNED]) == [MetricSummary(None, None, None, None, -1.0, 1.0, None, None)]
    assert state().result([SHARE]) == [MetricSummary(*[None] * 8)]


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_intervals_hold_with_the_confidence_asked_for(confidence: float) -> None:
    values = np.linspace(100.0, 300.0, 30)
    (result,) = state(*values).result([UNBOUNDED], confidence)
    more = [0.0, *values, 300.0]  # one more at each end
    expected = stats.t.interval(confidence, 29, np.mean(more), stats.sem(more))
    assert (result.ci_low, result.ci_high) == pytest.approx(expected)
    assert result.std_error == pytest.approx(stats.sem(values))


def test_the_lowest_and_the_highest_mean_of_ties() -> None:
    (result,) = QueryAggregate.of(ScoredPanel(STATUS, VALUES, TIES), ALL).result([SHARE])
    assert (result.tie_lowest, result.tie_highest) == (0.25, 0.625)
    (result,) = QueryAggregate.of(ScoredPanel(STATUS, VALUES), ALL).result([SHARE])
    assert (result.tie_lowest, result.tie_highest) == (None, None)


def test_what_is_no_number_is_null() -> None:
    assert [or_null(NAN), or_null(None), or_null(0.0)] == [None, None, 0.0]
