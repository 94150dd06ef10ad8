"""Exact sums: merge laws as equality of values, results as arithmetic on fractions."""

import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.statistics.moments import Moments

LARGEST, SMALLEST, SMALLEST_NORMAL = 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308
ANY = st.floats(allow_nan=False, allow_infinity=False)
# Squares of these stay finite, down to those that vanish.
MODERATE = st.floats(-1e150, 1e150) | st.sampled_from([SMALLEST, -SMALLEST_NORMAL, 0.1, -0.0])


def tables(values: st.SearchStrategy[float], least: int = 0) -> st.SearchStrategy[FloatArray]:
    """Tables of two metrics over some queries."""
    rows = st.lists(st.tuples(values, values), min_size=least, max_size=20)
    return rows.map(lambda rows: np.array(rows, np.float64).reshape(-1, 2))


def exact_columns(values: FloatArray) -> list[list[Fraction]]:
    return [[Fraction(value) for value in column] for column in values.T.tolist()]


@given(a=tables(ANY), b=tables(ANY), c=tables(ANY))
def test_merging_is_associative_and_commutative_and_zero_is_neutral(
    a: FloatArray, b: FloatArray, c: FloatArray
) -> None:
    x, y, z = Moments.of(a), Moments.of(b), Moments.of(c)
    assert x.merge(y).merge(z) == x.merge(y.merge(z))
    assert x.merge(y) == y.merge(x)
    assert x.merge(Moments.zero(2)) == x == Moments.zero(2).merge(x)


@given(values=tables(ANY), data=st.data())
def test_every_split_and_order_gives_the_same_state(values: FloatArray, data: st.DataObject) -> None:
    rows = data.draw(st.permutations(range(len(values))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=5)))
    parts = [values[np.array(part, np.int64)] for part in np.split(np.array(rows, np.int64), cuts)]
    assert reduce(Moments.merge, map(Moments.of, parts), Moments.zero(2)) == Moments.of(values)


def test_a_large_table_may_be_split_anywhere() -> None:
    values = np.random.default_rng(5).standard_normal((20_001, 3)) * 10.0 ** np.array([0, -300, 300])
    whole = Moments.of(values)
    assert Moments.of(values[:7]).merge(Moments.of(values[7:12_345])).merge(Moments.of(values[12_345:])) == whole
    assert Moments.of(values[::-1]) == whole
    assert whole.means() == tuple(float(sum(column) / len(column)) for column in exact_columns(values))


@given(values=tables(ANY, least=1))
def test_means_are_rounded_once(values: FloatArray) -> None:
    assert Moments.of(values).means() == tuple(float(sum(column) / len(column)) for column in exact_columns(values))


@given(values=tables(MODERATE))
def test_totals_are_rounded_once(values: FloatArray) -> None:
    assert Moments.of(values).totals() == tuple(float(sum(column)) for column in exact_columns(values))


@given(values=tables(MODERATE, least=2))
def test_variances_are_rounded_once(values: FloatArray) -> None:
    expected = []
    for column in exact_columns(values):
        mean = sum(column) / len(column)
        expected.append(float(sum((value - mean) ** 2 for value in column) / (len(column) - 1)))
    assert Moments.of(values).variances() == tuple(expected)


@pytest.mark.parametrize(
    ("column", "mean", "variance"),
    [
        ([1e16, 1.0, -1e16], 1 / 3, 1e32),
        ([LARGEST, LARGEST], LARGEST, 0.0),
        ([LARGEST, -LARGEST, 3.0, 3.0], 1.5, None),
        ([SMALLEST, SMALLEST], SMALLEST, 0.0),
        ([SMALLEST, -SMALLEST, SMALLEST_NORMAL, -SMALLEST_NORMAL], 0.0, 0.0),
        ([1.0, 1.0 + 2.0**-52, 1.0 + 2.0**-51], 1.0 + 2.0**-52, 2.0**-104),
    ],
)
def test_nothing_is_lost_to_cancellation(column: list[float], mean: float, variance: float | None) -> None:
    moments = Moments.of(np.array(column).reshape(-1, 1))
    assert moments.means() == (mean,)
    if variance is not None:
        assert moments.variances() == (variance,)


def test_standard_errors_agree_with_scipy() -> None:
    values = np.random.default_rng(6).random((500, 4))
    np.testing.assert_allclose(Moments.of(values).standard_errors(), stats.sem(values), rtol=1e-12)


def test_too_few_queries_give_nan() -> None:
    none, one = Moments.zero(2), Moments.of(np.array([[0.25, -3.0]]))
    assert Moments.of(np.empty((0, 2))) == none
    assert all(map(math.isnan, none.means() + none.variances() + none.standard_errors()))
    assert one.means() == (0.25, -3.0)
    assert all(map(math.isnan, one.variances() + one.standard_errors()))


def test_states_of_different_metrics_do_not_merge() -> None:
    with pytest.raises(ValueError, match="longer than argument"):
        Moments.zero(2).merge(Moments.zero(3))


@given(values=tables(ANY, least=1))
def test_extremes(values: FloatArray) -> None:
    moments = Moments.of(values)
    assert (moments.lowest, moments.highest) == (tuple(values.min(axis=0)), tuple(values.max(axis=0)))


@given(values=tables(st.sampled_from([0.0, 1.0, -0.0]) | st.sampled_from([0.5, -1.0, 2.0, SMALLEST, 1.0 - 2.0**-53])))
def test_successes_are_known_where_all_values_are_0_or_1(values: FloatArray) -> None:
    expected = [int(column.sum()) if set(column) <= {0.0, 1.0} and len(column) else None for column in values.T]
    assert Moments.of(values).successes() == tuple(expected)
