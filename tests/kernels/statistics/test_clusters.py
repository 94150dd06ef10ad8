"""Standard errors over clusters: against plain Python, as a state that merges, and how often intervals then hold."""

import math
import pickle
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.transforms.kernels.statistics.estimates import DifferenceEstimate, Estimate
from rankbeam.transforms.kernels.statistics.moments import ClusterMoments, ClusterTotals, Moments
from rankbeam.transforms.kernels.statistics.randomisation import Blocks

WEIGHTS = (2, 2, 2)
"""Two columns of values, and the one that counts queries."""
ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(-(2**33), 2**33), st.integers(-3, 3), st.booleans()))


def state(rows: list[tuple[int, int, int, bool]]) -> ClusterTotals:
    """Queries without a value count nothing."""
    hashes = np.array([row[0] for row in rows], np.uint64)
    values = np.array([(a * scored, b * scored, scored) for _, a, b, scored in rows], np.int64).reshape(len(rows), 3)
    return ClusterTotals.of(hashes, values)


def expected(rows: list[tuple[int, int, int, bool]], column: int) -> tuple[float, float] | None:
    """Effective clusters and standard error, from the definition, in fractions."""
    scored = [row for row in rows if row[3]]
    if not scored:
        return None
    clusters = sorted({row[0] for row in scored})
    members = [[Fraction(row[1 + column]) for row in scored if row[0] == item] for item in clusters]
    n = len(scored)
    mean = sum(map(sum, members), Fraction()) / n
    count = Fraction(n * n, sum(len(item) ** 2 for item in members))
    if count < 2:
        return float(count), math.nan
    between = sum(sum(value - mean for value in item) ** 2 for item in members)
    return float(count), math.sqrt(between / n**2 * count / (count - 1))


@settings(max_examples=examples(100))
@given(ROWS)
def test_the_standard_error_is_that_of_the_definition(rows: list[tuple[int, int, int, bool]]) -> None:
    moments = ClusterMoments.of(state(rows), WEIGHTS) if rows else None
    for column in (0, 1):
        target = expected(rows, column)
        if moments is None or target is None:
            continue
        actual = moments.result(column, 1.0)
        assert actual.count == target[0]
        assert actual.standard_error == pytest.approx(target[1], rel=1e-12, nan_ok=True)


@settings(max_examples=examples(100))
@given(ROWS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_any_division_and_any_order_give_the_same_state(rows, random, parts: int) -> None:  # type: ignore[no-untyped-def]
    shuffled = random.sample(rows, len(rows))
    merged = reduce(ClusterTotals.merge, [state(shuffled[first::parts]) for first in range(parts)], ClusterTotals())
    whole = state(rows)
    assert merged.hashes.tolist() == whole.hashes.tolist()
    assert merged.sums.tolist() == whole.sums.tolist()
    if rows:
        shares = [ClusterMoments.of(share, WEIGHTS) for _, share in whole.shares(3)]
        assert reduce(ClusterMoments.merge, shares) == reduce(ClusterMoments.merge, shares[::-1])
        assert reduce(ClusterMoments.merge, shares) == ClusterMoments.of(whole, WEIGHTS)


def test_a_state_is_small_and_exact() -> None:
    """One column had 800 bytes: all pairs of 75 configurations in 100 slices and 64 parts had gigabytes."""
    columns = 1000
    sums = np.random.default_rng(1).integers(-(1 << 62), 1 << 62, (5, columns))
    sums[:, -1] = 1, 2, 3, 4, 5
    moments = ClusterMoments.of(ClusterTotals(np.arange(5, dtype=np.uint64), sums), (columns - 1,) * columns)
    assert len(pickle.dumps(moments)) < 100 * columns
    exact = sums.astype(object)
    assert moments.squares == tuple((exact * exact).sum(axis=0).tolist())
    assert moments.products == tuple((exact * exact[:, -1:]).sum(axis=0).tolist())


def test_clusters_of_one_query_have_the_plain_standard_error() -> None:
    values = np.array([3, -4, 10, 0, 7])
    rows = [(number, int(value), 0, True) for number, value in enumerate(values)]
    actual = ClusterMoments.of(state(rows), WEIGHTS).result(0, 4.0)
    (plain,) = Moments.of(values[:, None] / 4.0).standard_errors()
    assert (actual.count, actual.lowest, actual.highest, actual.events) == (5.0, -1.0, 2.5, 4)
    assert actual.standard_error == pytest.approx(plain, rel=1e-15)


def test_an_example_by_hand() -> None:
    """Two clusters, 1 1 and 0 0: the mean is 1/2, the totals deviate by 1 and -1, and se² = 2/16 · 2/1."""
    rows = [(1, 1, 0, True), (1, 1, 0, True), (2, 0, 0, True), (2, 0, 0, True)]
    actual = ClusterMoments.of(state(rows), WEIGHTS).result(0, 1.0)
    assert (actual.count, actual.standard_error) == (2.0, 0.5)


def test_signs_flip_by_cluster() -> None:
    """Three clusters have eight flips, of which two reach the sum; the six queries would have 64."""
    hashes = np.array([5, 5, 7, 7, 9, 9], np.uint64)
    units = np.full((6, 1), 1 << 20)
    tested = Blocks.of(hashes[:3], units[:3]).merge(Blocks.of(hashes[3:], units[3:])).test(0)
    assert (tested.p_values.tolist(), tested.methods) == ([0.25], ("enumerated",))
    assert Blocks.of(np.arange(6, dtype=np.uint64), units).test(0).p_values.tolist() == [2 / 64]
    assert math.isnan(Blocks.of(hashes[:2], units[:2]).test(0).p_values[0])


SIZES = {"equal": [10] * 30, "uneven": [1] * 15 + [5] * 10 + [47] * 5}
UNCLUSTERED = {"equal": 0.75, "uneven": 0.55}
"""Coverage without clusters is below this."""


@pytest.mark.long
@pytest.mark.parametrize("shape", SIZES)
def test_intervals_over_clusters_hold(shape: str) -> None:
    """300 queries in 30 clusters with a correlation of 0.3."""
    sizes, samples, rng = SIZES[shape], 1000, np.random.default_rng(26)
    cluster = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    covered = {"mean": 0, "difference": 0, "plain": 0}
    for _ in range(samples):
        noise = math.sqrt(0.3) * rng.normal(size=len(sizes))[cluster] + math.sqrt(0.7) * rng.normal(size=len(cluster))
        values = np.clip(0.15 * noise, -0.5, 0.5)
        units = np.column_stack([np.rint(values * 2**32), np.ones(len(values))]).astype(np.int64)
        by = ClusterMoments.of(ClusterTotals.of(cluster, units), (1, 1)).result(0, 2.0**32)
        (mean,), (error,) = (moments := Moments.of(values[:, None])).means(), moments.standard_errors()
        none = np.empty(0)
        of_pairs = DifferenceEstimate(by.count, mean, by.standard_error, by.lowest, by.highest, 1.0, by.events)
        intervals = {
            "mean": Estimate(by.count, mean, by.standard_error, floor=-0.5, ceiling=0.5).interval(),
            "difference": of_pairs.interval(none),
            "plain": DifferenceEstimate(len(values), mean, error, -0.5, 0.5, 1.0, len(values)).interval(none),
        }
        for name, (low, high) in intervals.items():
            covered[name] += low <= 0.0 <= high
    assert min(covered["mean"], covered["difference"]) >= 0.93 * samples
    assert covered["plain"] < UNCLUSTERED[shape] * samples
