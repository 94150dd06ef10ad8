"""The sign-flip test: merge laws as equality of values, p-values against enumeration, SciPy and uniformity."""

import math
import pickle
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankbeam.transforms.kernels.arrays import FloatArray, HashArray, IntArray
from rankbeam.transforms.kernels.statistics.randomisation import (
    ENUMERATED_BLOCKS,
    LARGEST_DIFFERENCE,
    LIMIT,
    MOST_FLIPS,
    SAMPLED,
    TILTED,
    Blocks,
)

UNIT = 2.0**32
# Few distinct hashes and differences: equal hashes with equal and with unequal rows do occur.
HASHES = st.integers(0, 3) | st.integers(0, 2**64 - 1)
DIFFERENCES = st.integers(-2, 2) | st.integers(-LARGEST_DIFFERENCE, LARGEST_DIFFERENCE)
ROWS = st.lists(st.tuples(HASHES, DIFFERENCES, DIFFERENCES), max_size=20)
SIZES = st.sampled_from([0, 1, 500, LIMIT - 1, LIMIT, LIMIT + 1, 3000])

Rows = list[tuple[int, int, int]]


def state(rows: Rows) -> Blocks:
    hashes = np.array([row[0] for row in rows], np.uint64)
    return Blocks.of(hashes, np.array([row[1:] for row in rows], np.int64).reshape(-1, 2))


def none_of(metrics: int) -> Blocks:
    """The state of no query."""
    return Blocks.of(np.zeros(0, np.uint64), np.zeros((0, metrics), np.int64))


def quantised(values: FloatArray) -> IntArray:
    return np.rint(values * UNIT).astype(np.int64).reshape(len(values), -1)


def drawn_hashes(seed: int, count: int) -> HashArray:
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def p_values_of(values: FloatArray, seed: int = 0, flips: int = 10_000) -> FloatArray:
    return Blocks.of(drawn_hashes(1, len(values)), quantised(values)).test(seed, flips).p_values


def table(seed: int, count: int) -> tuple[HashArray, IntArray]:
    """Many queries, some of them with equal hashes."""
    rng = np.random.default_rng([seed, count])
    hashes = rng.choice(rng.integers(0, 2**64, count // 2 + 1, dtype=np.uint64), count)
    return hashes, rng.integers(-LARGEST_DIFFERENCE, LARGEST_DIFFERENCE + 1, (count, 3))


@given(a=ROWS, b=ROWS, c=ROWS)
def test_merging_is_associative_and_commutative_and_zero_is_neutral(a: Rows, b: Rows, c: Rows) -> None:
    x, y, z = state(a), state(b), state(c)
    assert x.merge(y).merge(z) == x.merge(y.merge(z)) == state(a + b + c)
    assert x.merge(y) == y.merge(x)
    assert x.merge(none_of(2)) == x == none_of(2).merge(x)


@given(seed=st.integers(0, 2**32), sizes=st.tuples(SIZES, SIZES, SIZES))
def test_the_merge_laws_hold_across_the_limit(seed: int, sizes: tuple[int, int, int]) -> None:
    hashes, differences = table(seed, sum(sizes))
    cuts = [sizes[0], sizes[0] + sizes[1]]
    parts = zip(np.split(hashes, cuts), np.split(differences, cuts), strict=True)
    x, y, z = (Blocks.of(*part) for part in parts)
    whole = Blocks.of(hashes, differences)
    assert x.merge(y).merge(z) == x.merge(y.merge(z)) == z.merge(x).merge(y) == whole
    assert whole.merge(none_of(3)) == whole == none_of(3).merge(whole)
    assert len(whole.keys) == min(sum(sizes), LIMIT) == len(whole.sums)
    assert whole.sums.sum(axis=0).tolist() == differences.sum(axis=0).tolist()


@pytest.mark.parametrize("count", [LIMIT, LIMIT + 1, 5000])
def test_any_order_and_any_split_give_the_same_state(count: int) -> None:
    hashes, differences = table(3, count)
    rng = np.random.default_rng(4)
    whole = Blocks.of(hashes, differences)
    for _ in range(3):
        order = rng.permutation(count)
        parts = np.split(order, np.sort(rng.integers(0, count, 20)))
        merged = reduce(Blocks.merge, (Blocks.of(hashes[part], differences[part]) for part in parts), none_of(3))
        assert merged == whole
    np.testing.assert_array_equal(merged.test(5, 500).p_values, whole.test(5, 500).p_values)


@pytest.mark.parametrize("count", [1025, 4000])
def test_beyond_the_limit_queries_with_the_same_top_bits_are_one_block(count: int) -> None:
    hashes, differences = table(9, count)
    blocks = Blocks.of(hashes, differences)
    assert blocks.keys.tolist() == list(range(1024))
    for bucket in (0, 17, 1023):
        of_bucket = differences[hashes >> np.uint64(54) == bucket]
        assert blocks.sums[bucket].tolist() == of_bucket.sum(axis=0).tolist()


def test_a_state_is_equal_by_value_and_survives_pickling() -> None:
    for count in (10, 2000):
        blocks = Blocks.of(*table(6, count))
        assert pickle.loads(pickle.dumps(blocks)) == blocks  # noqa: S301  our own
        assert blocks != Blocks.of(*table(7, count))
    assert none_of(2) != none_of(3)
    one, other = (Blocks.of(np.array(keys, np.uint64), np.array([[3], [5]])) for keys in ([1, 2], [3, 4]))
    assert one != other  # their signs differ
    hashes, differences = table(8, 2000)
    more = Blocks.of(hashes, differences).merge(Blocks.of(hashes[:1], np.zeros_like(differences[:1])))
    assert more != Blocks.of(hashes, differences)  # another number of queries
    assert none_of(2) != "nothing"


def test_what_does_not_fit_is_refused() -> None:
    hashes = np.zeros(1, np.uint64)
    for beyond in (2**43 + 1, -(2**43) - 1, -(2**63)):
        with pytest.raises(ValueError, match="larger unit"):
            Blocks.of(hashes, np.array([[beyond]]))
    with pytest.raises(ValueError, match="do not match"):
        Blocks.of(hashes, np.zeros((2, 1), np.int64))
    with pytest.raises(ValueError, match="do not merge"):
        none_of(2).merge(none_of(3))
    with pytest.raises(ValueError, match="at least one flip"):
        none_of(2).test(0, 0)


# Multiples of 0.1 are not binary fractions: sums which are equal on paper differ once rounded.
@pytest.mark.parametrize("count", range(2, 13))
@pytest.mark.parametrize("kind", ["smooth", "tenths", "sparse"])
def test_few_queries_give_the_exact_p_value(kind: str, count: int) -> None:
    rng = np.random.default_rng([8, count])
    smooth = rng.normal(0.05, 0.2, (count, 5))
    tenths = rng.integers(-4, 7, (count, 5)) / 10
    values = {"smooth": smooth, "tenths": tenths, "sparse": tenths * (rng.random((count, 5)) < 0.4)}[kind]
    # SciPy compares with a tolerance of its own, relative to the statistic; whole tenths need none.
    exact = values if kind == "smooth" else np.rint(values * 10)
    expected = stats.permutation_test(
        (exact,), lambda x, axis: np.sum(x, axis=axis), permutation_type="samples", vectorized=True, n_resamples=np.inf
    ).pvalue
    np.testing.assert_allclose(p_values_of(values), expected, rtol=0, atol=1e-12)


def enumerated(values: FloatArray) -> float:
    totals = np.zeros(1)
    for value in values:
        totals = np.concatenate((totals + value, totals - value))
    return float(np.mean(np.abs(totals) >= abs(values.sum()) - 1e-9))


def test_only_queries_that_differ_count_for_enumeration() -> None:
    rng = np.random.default_rng(10)
    values = np.zeros((900, 1))
    values[rng.choice(900, ENUMERATED_BLOCKS, replace=False), 0] = rng.integers(-3, 6, ENUMERATED_BLOCKS) / 10 + 0.05
    expected = enumerated(values[values != 0])
    assert p_values_of(values)[0] == pytest.approx(expected, abs=1e-12)
    assert p_values_of(values, seed=99)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("shift", [0.0, 0.05, 0.1, 0.13, 0.16])
def test_more_queries_come_near_to_the_exact_p_value(shift: float) -> None:
    values = np.random.default_rng(11).normal(shift, 0.2, (20, 1))
    expected = enumerated(values[:, 0])
    flips = 10_000 if expected > 0.003 else MOST_FLIPS
    tolerance = 4.0 * math.sqrt(expected * (1.0 - expected) / flips) + 1.0 / flips
    assert p_values_of(values)[0] == pytest.approx(expected, abs=tolerance)


@pytest.mark.long
@pytest.mark.parametrize("count", [40, 100, 225, 500])
def test_sampled_p_values_agree_with_scipy(count: int) -> None:
    rng = np.random.default_rng([12, count])
    values = rng.normal(np.array([0.0, 0.5, 1.0, 2.0]) / math.sqrt(count), 1.0, (count, 4)) / 10
    resamples = 10_000
    expected = stats.permutation_test(
        (values,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        batch=200,
        n_resamples=resamples,
        rng=np.random.default_rng(13),
    ).pvalue
    tolerance = 4.0 * np.sqrt(expected * (1.0 - expected) * (1.0 / 10_000 + 1.0 / resamples))
    assert (np.abs(p_values_of(values) - expected) <= tolerance).all()


def test_ties_count_among_sampled_flips_as_well() -> None:
    # 40 queries of ±0.1, 26 of them positive: |T*| ≥ |T| if at most 14, or at least 26, are positive.
    values = np.where(np.arange(40) < 26, 0.1, -0.1).reshape(-1, 1)
    expected = 2.0 * stats.binom.cdf(14, 40, 0.5)
    assert p_values_of(values)[0] == pytest.approx(expected, abs=4.0 * math.sqrt(expected / 10_000))


@pytest.mark.parametrize("count", [LIMIT + 1, 5000, 50_000])
def test_blocks_of_many_queries_agree_with_the_t_test(count: int) -> None:
    rng = np.random.default_rng([14, count])
    values = rng.normal(np.array([0.0, 0.5, 1.0, 2.0, 3.0]) / math.sqrt(count), 1.0, (count, 5)) / 10
    # Blocks are other terms of the same sum: the statistic's spread is known to a share of about 1/√(2 · 1024).
    z = stats.ttest_1samp(values, 0.0).statistic
    low, high = (2.0 * stats.norm.sf(np.abs(z) * factor) for factor in (1.1, 0.9))
    p_values = p_values_of(values)
    assert (p_values > low - 0.02).all()
    assert (p_values < high + 0.02).all()


# 10^-4 is the false-alarm rate of each; the samples are fixed.
@pytest.mark.parametrize("count", [30, 300, 3000])
def test_p_values_are_uniform_without_a_difference(count: int) -> None:
    rng = np.random.default_rng([15, count])
    values = rng.laplace(0.0, 0.05, (count, 500)) * (rng.random((count, 500)) < 0.7)
    p_values = p_values_of(np.clip(values, -1.0, 1.0), flips=2000)
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4


def test_where_few_flips_reach_the_mean_signs_are_drawn_where_they_do() -> None:
    values = np.random.default_rng(16).normal([0.0, 0.03, 0.05, 0.2], 0.1, (100, 4))
    blocks = Blocks.of(drawn_hashes(1, len(values)), quantised(values))
    some, most = blocks.test(0), blocks.test(0, MOST_FLIPS)
    assert (some.methods, most.methods) == ((SAMPLED, SAMPLED, TILTED, TILTED), (SAMPLED,) * 4)
    assert some.p_values[2] == pytest.approx(most.p_values[2], abs=2e-5)
    assert some.p_values[3] == pytest.approx(most.p_values[3]) == 1.0 / (1 + MOST_FLIPS)


@pytest.mark.parametrize("kind", ["smooth", "tenths", "skewed", "signs"])
def test_tilted_p_values_are_those_of_all_sign_vectors(kind: str) -> None:
    rng, compared = np.random.default_rng([22, len(kind)]), 0
    for _ in range(12):
        count = int(rng.integers(17, 21))
        sign = np.where(rng.random(count) < 0.93, 1.0, -1.0)
        values = {
            "smooth": rng.normal(0.25, 0.2, count).clip(-1, 1),
            "tenths": rng.integers(1, 6, count) / 10 * sign,
            "skewed": rng.exponential(0.2, count).clip(0, 1) * sign,
            "signs": sign,
        }[kind]
        blocks = Blocks.of(drawn_hashes(1, count), quantised(values))
        p_value, method = blocks.test(0).p_values[0], blocks.test(0).methods[0]
        if method == TILTED:
            expected = (1 + MOST_FLIPS * enumerated(values)) / (1 + MOST_FLIPS)
            assert p_value == pytest.approx(expected, rel=0.15)
            compared += 1
    assert compared >= 4


@pytest.mark.parametrize("count", [100, LIMIT, 5000])
def test_tilted_p_values_agree_with_the_normal_distribution_far_out(count: int) -> None:
    signs = np.where(np.arange(count) % 2, 1, -1)
    for z in (3.2, 3.6, 4.0):
        values = signs + z / math.sqrt(count)
        observed = Blocks.of(np.arange(count, dtype=np.uint64) << np.uint64(50), quantised(values[:, np.newaxis] / 4))
        p_value, method = observed.test(0).p_values[0], observed.test(0).methods[0]
        assert method == TILTED
        if count <= LIMIT:
            exact = enumerated_by_binomial(values)
            assert p_value == pytest.approx((1 + MOST_FLIPS * exact) / (1 + MOST_FLIPS), rel=0.15)


def enumerated_by_binomial(values: FloatArray) -> float:
    """As `enumerated`, of values of two sizes."""
    (low, many), (high, more) = ((size, int(np.sum(np.abs(values) == size))) for size in np.unique(np.abs(values)))
    some, others = (np.arange(-number, number + 1, 2) * size for size, number in ((low, many), (high, more)))
    chance = np.outer(stats.binom.pmf(np.arange(many + 1), many, 0.5), stats.binom.pmf(np.arange(more + 1), more, 0.5))
    return float(chance[np.abs(some[:, np.newaxis] + others) >= abs(values.sum()) - 1e-9].sum())


def test_all_flips_that_are_tilted_are_the_same_in_any_order_and_for_any_split() -> None:
    hashes, differences = drawn_hashes(3, 3000), np.random.default_rng(23).integers(-900, 1000, (3000, 2))
    whole = Blocks.of(hashes, differences)
    assert whole.test(4).methods == (TILTED, TILTED)
    for part in (np.random.default_rng(24).permutation(3000), np.arange(3000)[::-1]):
        parts = [Blocks.of(hashes[rows], differences[rows]) for rows in np.array_split(part, 7)]
        np.testing.assert_array_equal(reduce(Blocks.merge, parts).test(4).p_values, whole.test(4).p_values)


def test_every_further_flip_reaches_the_mean_or_does_not() -> None:
    values = np.random.default_rng(17).normal(0.01, 0.1, (100, 1))
    reached = [round(p_values_of(values, flips=flips)[0] * (1 + flips)) - 1 for flips in range(500, 640)]
    assert set(np.diff(reached).tolist()) == {0, 1}


def test_p_values_follow_the_seed() -> None:
    values = np.random.default_rng(18).normal(0.01, 0.1, (100, 1))
    different = {p_values_of(values, seed)[0] for seed in (0, 1, -1, 2**63)}
    assert len(different) == 4
    assert max(different) - min(different) < 0.05
    assert p_values_of(values, 5) == p_values_of(values, 5) == p_values_of(values, 5 + 2**64)


def test_p_values_of_a_seed_are_those_of_earlier_versions() -> None:
    places = np.arange(40)
    signs = np.where([places % 10 < 8, places % 8 < 7, places % 3 < 2], 1, -1)
    sizes = np.stack([places % 7, places % 5, places % 5]) + 1
    tested = Blocks.of(places.astype(np.uint64), (signs * sizes << 20).T).test(1)
    assert tested.methods == (TILTED, TILTED, SAMPLED)
    assert tested.p_values.tolist() == pytest.approx([2.05495783e-04, 1.55934647e-05, 3.68963104e-02], rel=1e-8)


def test_one_metric_does_not_move_another() -> None:
    values = np.random.default_rng(19).normal([0.0, 0.02, 0.04, 0.3], 0.1, (100, 4))
    together = p_values_of(values)
    for metric in range(4):
        assert p_values_of(values[:, [metric]])[0] == together[metric]


def test_sums_beyond_the_doubles_are_rounded_first() -> None:
    rng = np.random.default_rng(20)
    keys, sums = np.arange(LIMIT, dtype=np.uint64), rng.integers(-(2**25), 2**25, (LIMIT, 3))
    small, large = Blocks(10**7, keys, sums), Blocks(10**7, keys, sums << 20)
    np.testing.assert_allclose(large.test(3).p_values, small.test(3).p_values, rtol=0, atol=1e-4)
    assert np.abs(large.sums).sum() < 2**63


def test_too_few_queries_give_nan_and_no_difference_gives_1() -> None:
    one = Blocks.of(np.array([7], np.uint64), np.array([[5, 0]]))
    assert np.isnan(none_of(2).test(0).p_values).all()
    assert np.isnan(one.test(0).p_values).all()
    for count in (2, 100, 2000):
        assert p_values_of(np.zeros((count, 2))).tolist() == [1.0, 1.0]
    assert none_of(0).test(0).p_values.tolist() == []


def of_values(values: list[int]) -> Blocks:
    return Blocks.of(np.arange(len(values), dtype=np.uint64), np.array(values, np.int64)[:, np.newaxis])


def test_a_sum_that_falls_short_by_the_rounding_of_every_block_reaches_the_observed_one() -> None:
    blocks = of_values([1] * (ENUMERATED_BLOCKS + 2))
    assert blocks.test(0).p_values.tolist() == [1.0]  # 18 - 18 = 0 is reached by every sum


def test_small_differences_are_not_rounded() -> None:
    # |3s| reaches 54 - 18 where |s|, of 18 signs, is at least 12.
    expected = 2 * stats.binom.cdf(3, 18, 0.5)
    assert of_values([3] * 18).test(0, MOST_FLIPS).p_values == pytest.approx([expected], rel=0.1)


def test_twenty_flips_that_reach_the_observed_sum_are_enough() -> None:
    # Ten more and eight fewer by a million: all but 19% of the flips reach the difference.
    blocks = of_values([10**6] * 10 + [-(10**6)] * 8)
    tests = ((flips, blocks.test(0, flips)) for flips in range(20, 40))
    flips, first = next((flips, tested) for flips, tested in tests if tested.methods == (SAMPLED,))
    assert first.p_values[0] == 21 / (1 + flips)
