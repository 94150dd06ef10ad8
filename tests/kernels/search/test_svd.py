"""The truncated decomposition and the nearest vectors, against NumPy's own on whole matrices."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples

from rankbeam.transforms.kernels.search.nearest import nearest, unit_length
from rankbeam.transforms.kernels.search.svd import OVERSAMPLES, SparseRows, decompose


def sparse(dense: np.ndarray) -> SparseRows:
    row, column = np.nonzero(dense)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(dense)))])
    return SparseRows(offsets, column, dense[row, column].astype(np.float32))


@settings(max_examples=examples(30))
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 8), st.integers(0, 1000))
def test_products_are_those_of_the_dense_matrix(rows: int, columns: int, width: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    matrix = np.where(draw.random((rows, columns)) < 0.2, draw.random((rows, columns)), 0.0)
    other = draw.random((columns, width)).astype(np.float32)

    assert sparse(matrix).times(other) == pytest.approx(matrix @ other, abs=1e-5)
    back = draw.random((rows, width)).astype(np.float32)
    assert sparse(matrix).transposed(columns).times(back) == pytest.approx(matrix.T @ back, abs=1e-5)


def low_rank(rows: int = 60, columns: int = 45) -> np.ndarray:
    """A matrix whose singular values halve from one to the next."""
    draw = np.random.default_rng(1)
    left, right = (np.linalg.qr(draw.standard_normal((size, 20)))[0] for size in (rows, columns))
    matrix: np.ndarray = left * 0.5 ** np.arange(20) @ right.T
    return matrix


def test_the_largest_values_and_their_vectors_are_those_of_the_whole_decomposition() -> None:
    matrix = low_rank()
    svd = decompose(sparse(matrix.T), len(matrix), 5)
    left, values, right = np.linalg.svd(matrix, full_matrices=False)

    assert svd.values == pytest.approx(values[:5], rel=1e-4)
    assert np.abs(svd.columns.T @ right[:5].T) == pytest.approx(np.eye(5), abs=1e-3)
    assert np.abs(svd.rows) == pytest.approx(np.abs(left[:, :5] * values[:5]), abs=1e-4)
    assert svd.rows == pytest.approx(matrix @ svd.columns, abs=1e-4)


def test_signs_are_fixed_and_the_decomposition_is_repeatable() -> None:
    svd, again = (decompose(sparse(low_rank().T), 60, 5) for _ in range(2))

    assert (svd.columns[np.abs(svd.columns).argmax(axis=0), np.arange(5)] > 0).all()
    assert (svd.rows == again.rows).all()
    assert (svd.columns == again.columns).all()


@pytest.mark.parametrize("count", [1, 3, 10])
def test_a_small_matrix_has_no_more_values_than_rows_or_columns(count: int) -> None:
    svd = decompose(sparse(np.ones((3, 2))), 2, count)

    assert svd.rows.shape == (2, min(count, 2))
    assert np.isfinite(svd.rows).all()


def test_beyond_the_rank_of_a_matrix_values_and_vectors_are_zero() -> None:
    svd = decompose(sparse(low_rank().T), 60, 25)

    products = svd.columns.T.astype(float) @ svd.columns
    assert svd.values[20:] == pytest.approx(0, abs=1e-7)
    assert products == pytest.approx(np.diag([1.0] * 20 + [0.0] * 5), abs=1e-5)
    assert svd.rows @ svd.columns.T == pytest.approx(low_rank(), abs=1e-4)


def test_memory_is_a_few_times_that_of_the_vectors() -> None:
    terms, units, count = 40_000, 300, 30
    draw = np.random.default_rng(2)
    row, column = np.unique(draw.integers(0, [[terms], [units]], (2, 60_000)), axis=1)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=terms))])
    matrix = SparseRows(offsets, column, np.ones(len(row), np.float32))

    tracemalloc.start()
    try:
        decompose(matrix, units, count)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    width = count + OVERSAMPLES
    in_single_precision = 4 * terms * width
    assert most < 5 * in_single_precision


@settings(max_examples=examples(50))
@given(st.integers(0, 1000), st.integers(1, 30), st.integers(1, 12))
def test_the_nearest_are_the_head_of_the_whole_order(seed: int, vectors: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    some = unit_length(draw.integers(-1, 2, (vectors, 3)))  # many are equal, and some have length 0
    queries = unit_length(draw.standard_normal((4, 3)))

    for query, (places, scores) in zip(queries, nearest(some, queries, count), strict=True):
        products = some.astype(float) @ query.astype(float)
        expected = sorted((-products[place], place) for place in range(vectors) if some[place].any())[:count]
        assert places.tolist() == [place for _, place in expected]
        assert scores == pytest.approx([-product for product, _ in expected])
