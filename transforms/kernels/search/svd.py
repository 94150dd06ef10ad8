"""The truncated singular value decomposition of a sparse matrix, by seeded random projection.

Halko, Martinsson and Tropp, "Finding structure with randomness" (SIAM Review 53, 2011), algorithms 4.4 and 5.1.

Matrices with a hundred columns and a row for each term or chunk are decomposed through their products with themselves,
which are small: NumPy would make several copies of the matrices, in double precision.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankbeam.transforms.kernels.arrays import FloatArray, IntArray, SingleArray, one_thread, stable_order

OVERSAMPLES, POWER_ITERATIONS, SEED = 10, 2, 0
ROUNDING = 2  # raise this number if the last bits of decompositions change, so that stored ones are computed again

_ENTRIES_AT_ONCE = 8192  # with a hundred columns each, they fit into a processor's cache
_ROWS_AT_ONCE = 4096
_NOISE = 1e-7  # a singular value below this part of the largest one is rounding errors of single precision


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix by rows."""

    offsets: IntArray  # int64[n + 1]; row i has the entries from offsets[i] to offsets[i + 1]
    column: npt.NDArray[np.integer]  # int[e], of each entry
    value: SingleArray  # float32[e], of each entry

    def times(self, dense: SingleArray) -> SingleArray:
        """The product with a dense matrix.

        >>> SparseRows(np.array([0, 2, 2]), np.array([0, 1]), np.float32([2, 3])).times(np.eye(2, dtype=np.float32))
        array([[2., 3.],
               [0., 0.]], dtype=float32)
        """
        product = np.zeros((len(self.offsets) - 1, dense.shape[1]), np.float32)
        for first, last in self._ranges():
            entries = slice(self.offsets[first], self.offsets[last])
            terms = dense[self.column[entries]] * self.value[entries, None]
            begin = self.offsets[first:last] - self.offsets[first]
            is_full = np.diff(self.offsets[first : last + 1]) > 0  # reduceat gives an empty row the next entry
            if is_full.any():
                product[first:last][is_full] = np.add.reduceat(terms, begin[is_full], axis=0)
        return product

    def transposed(self, columns: int) -> "SparseRows":
        """The same matrix with rows and columns exchanged."""
        row = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        order = stable_order(self.column.astype(np.int64), columns)
        counts = np.bincount(self.column, minlength=columns)
        return SparseRows(np.concatenate([[0], np.cumsum(counts)]), row[order], self.value[order])

    def _ranges(self) -> Iterator[tuple[int, int]]:
        first, rows = 0, len(self.offsets) - 1
        while first < rows:
            end = int(np.searchsorted(self.offsets, self.offsets[first] + _ENTRIES_AT_ONCE, side="right")) - 1
            yield first, max(first + 1, end)
            first = max(first + 1, end)


@dataclass(frozen=True)
class Decomposition:
    """The largest singular values of a matrix of n rows and m columns, with the vectors of both sides."""

    # float32[n, k], left singular vectors times the singular values: the rows in the space of the columns'.
    rows: SingleArray
    columns: SingleArray  # float32[m, k], right singular vectors; the largest component of each is positive
    values: SingleArray  # float32[k], descending


def decompose(by_column: SparseRows, rows: int, count: int) -> Decomposition:
    """The truncated decomposition of a matrix.

    Args:
        by_column: the matrix, transposed: the rows of `by_column` are its columns.
        rows: number of rows of the matrix.
        count: most singular values; fewer if the matrix has fewer rows or columns.
    """
    columns = len(by_column.offsets) - 1
    count = min(count, rows, columns)
    width = min(count + OVERSAMPLES, rows, columns)
    by_row = by_column.transposed(rows)
    draw = np.random.default_rng(SEED)
    with one_thread():  # a sum's order, and so its last bits, would depend on the number of threads
        basis = _orthogonal(by_row.times(draw.standard_normal((columns, width), np.float32)))
        for _ in range(POWER_ITERATIONS):
            basis = _orthogonal(by_row.times(_orthogonal(by_column.times(basis))))
        projected = by_column.times(basis)
        column_basis = _orthogonal(projected)
        rotation, values, _ = np.linalg.svd(_products(column_basis, projected))
        right = column_basis @ rotation[:, :count].astype(np.float32)
        largest = right[np.abs(right).argmax(axis=0), np.arange(count)]
        right *= np.where(largest < 0, np.float32(-1), np.float32(1))
    return Decomposition(by_row.times(right), right, values[:count].astype(np.float32))


def _orthogonal(matrix: SingleArray) -> SingleArray:
    """An orthonormal basis of the columns of a matrix; as many columns of zeros as it lacks in rank.

    The second pass restores the digits that the first one loses (Yamamoto et al., ETNA 44, 2015, "CholeskyQR2").

    >>> np.abs(_orthogonal(np.array([[3, 3], [0, 0], [4, 4]], np.float32))).round(6)
    array([[0.6, 0. ],
           [0. , 0. ],
           [0.8, 0. ]], dtype=float32)
    """
    for _ in range(2):
        squares, vectors = np.linalg.eigh(_products(matrix, matrix))
        lengths = np.sqrt(np.maximum(squares[::-1], 0.0))
        is_noise = lengths <= _NOISE * lengths[0]
        inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=~is_noise)
        matrix = matrix @ (vectors[:, ::-1] * inverse).astype(np.float32)
    return matrix


def _products(left: SingleArray, right: SingleArray) -> FloatArray:
    """The products of the columns of two matrices, in double precision.

    Args:
        left: float32[n, k].
        right: float32[n, l].

    Returns:
        float64[k, l].
    """
    products = np.zeros((left.shape[1], right.shape[1]))
    for first in range(0, len(left), _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        products += left[rows].astype(np.float64).T @ right[rows].astype(np.float64)
    return products
