"""The keyed bootstrap: its weights, the laws of its state, and its intervals."""

from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankbeam.transforms.kernels.hashing import hash_strings
from rankbeam.transforms.kernels.statistics.bootstrap import (
    LIMIT,
    SMALL,
    Replicates,
    bootstrap_interval,
    weighted_sums,
    weights,
)
from rankbeam.transforms.kernels.statistics.intervals import student_interval

REPLICATES = 50


def hashes_of(first: int, count: int) -> np.ndarray:
    return hash_strings(pa.array([f"q{number}" for number in range(first, first + count)]))


def sample(seed: int, count: int, columns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rows = np.random.default_rng(seed).integers(-(1 << 33), 1 << 33, (count, columns))
    return hashes_of(seed * 10_000, count), rows


def test_weights_are_poisson_numbers() -> None:
    drawn = weights(hashes_of(0, 20_000), 100, seed=1)
    counts = np.bincount(drawn.ravel(), minlength=7)[:7]
    expected = stats.poisson(1).pmf(np.arange(7)) * drawn.size
    # Resolved to 2^-16; the bins from 0 to 6 hold all but 10^-4 of it. False alarm 10^-4.
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4


def test_weights_are_independent_of_each_other() -> None:
    """No correlation between queries, between replicates (also of one hash), nor between seeds; false alarm 10^-4."""
    drawn = weights(hashes_of(0, 5000), 64, seed=1).astype(float)
    other = weights(hashes_of(0, 5000), 64, seed=2).astype(float)
    between = np.corrcoef(np.concatenate([drawn, other], axis=1).T)[np.triu_indices(128, 1)] * np.sqrt(5000)
    assert np.abs(between).max() < stats.norm.isf(1e-4 / 2 / len(between))
    assert between.std() == pytest.approx(1.0, abs=0.05)
    queries = np.corrcoef(weights(hashes_of(0, 100), 4000, seed=3).astype(float))[np.triu_indices(100, 1)] * np.sqrt(
        4000
    )
    assert np.abs(queries).max() < stats.norm.isf(1e-4 / 2 / len(queries))


def test_the_weight_of_a_query_depends_on_its_id_the_replicate_and_the_seed_alone() -> None:
    hashes = hashes_of(0, 300)
    drawn = weights(hashes, 10, seed=5)
    order = np.random.default_rng(0).permutation(300)
    assert np.array_equal(weights(hashes[order], 10, 5), drawn[order])
    assert np.array_equal(weights(hashes, 7, 5), drawn[:, :7])
    assert not np.array_equal(weights(hashes, 10, 6), drawn)


def test_weighted_sums_are_exact() -> None:
    hashes, rows = sample(1, 700)
    drawn = weights(hashes, REPLICATES, 0)
    expected = [
        [sum(int(w) * int(x) for w, x in zip(weight, column, strict=True)) for weight in drawn.T] for column in rows.T
    ]
    assert weighted_sums(hashes, rows, REPLICATES, 0).tolist() == expected


def test_weighted_sums_of_many_large_values_are_exact() -> None:
    """Their total is beyond 2^53, where floating-point numbers leave out the odd ones."""
    hashes, value = hashes_of(0, 60_000), (1 << 38) - 1
    expected = weights(hashes, 8, 0).sum(axis=0, dtype=np.int64) * value
    assert weighted_sums(hashes, np.full((60_000, 1), value), 8, 0).tolist() == [expected.tolist()]
    assert expected.min() > 1 << 53


SIZES = st.sampled_from([0, 1, 5, LIMIT - 6, LIMIT - 5, LIMIT, LIMIT + 1, 1500])


@given(sizes=st.lists(SIZES, min_size=2, max_size=4), data=st.data())
def test_any_order_and_any_tree_give_the_state_of_all_queries(sizes: list[int], data: st.DataObject) -> None:
    parts = [sample(seed, size) for seed, size in enumerate(sizes)]
    states = [Replicates.of(*part, 8, 0) for part in parts]
    whole = Replicates.of(np.concatenate([h for h, _ in parts]), np.concatenate([rows for _, rows in parts]), 8, 0)
    left = list(data.draw(st.permutations(states)))
    while len(left) > 1:
        first = left.pop(data.draw(st.integers(0, len(left) - 1)))
        place = data.draw(st.integers(0, len(left) - 1))
        left[place] = left[place].merge(first)
    assert left == [whole]
    assert np.array_equal(left[0].totals(), whole.totals())


def test_the_state_does_not_grow_with_the_queries() -> None:
    states = [Replicates.of(*sample(seed, 2000), REPLICATES, 0) for seed in range(3)]
    sizes = [state.rows.nbytes + state.hashes.nbytes for state in [states[0], reduce(Replicates.merge, states)]]
    assert sizes == [0, 0]


def test_the_spread_of_replicates_is_the_standard_error() -> None:
    values = np.random.default_rng(4).beta(0.4, 1.6, 400)
    hashes, units = hashes_of(0, 400), np.rint(values * (1 << 32)).astype(np.int64)
    sums = weighted_sums(hashes, np.column_stack([units, np.ones(400, np.int64)]), 4000, 0)
    means = sums[0] / (1 << 32) / sums[1]
    assert means.std() == pytest.approx(stats.sem(values), rel=0.05)
    assert means.mean() == pytest.approx(values.mean(), abs=4 * stats.sem(values) / np.sqrt(4000) + 1e-4)
    ours = bootstrap_interval(values.mean(), stats.sem(values), means, 400)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(1))
    # An end of either interval is known to about 0.03 standard errors × 4.
    interval = theirs.confidence_interval
    assert ours == pytest.approx((interval.low, interval.high), abs=0.17 * stats.sem(values))


def test_few_queries_have_the_interval_of_student() -> None:
    drawn = np.random.default_rng(0).normal(0.5, 0.1, 1000)
    assert bootstrap_interval(0.5, 0.1, drawn, SMALL - 1) == student_interval(0.5, 0.1, SMALL - 1)
    assert bootstrap_interval(0.5, 0.1, drawn[:0], 1000) == student_interval(0.5, 0.1, 1000)
    assert bootstrap_interval(0.5, 0.1, drawn, SMALL) != student_interval(0.5, 0.1, SMALL)
    assert np.isnan(bootstrap_interval(0.5, np.nan, drawn, 1)).all()


def test_the_interval_makes_up_for_the_divisor_of_the_bootstrap() -> None:
    """Replicates that are spread evenly have the level as their quantile."""
    level = stats.norm.cdf(stats.t.ppf(0.05, SMALL - 1) * np.sqrt(SMALL / (SMALL - 1)))
    interval = bootstrap_interval(0.5, 0.1, np.linspace(0.0, 1.0, 10_001), SMALL, 0.9)
    assert interval == pytest.approx((level, 1.0 - level), abs=1e-12)
