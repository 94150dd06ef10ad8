"""Sums that do not depend on the order of their terms, and the statistics drawn from them.

Floating-point addition is not associative, so a mean would depend on bundles and workers. Here a sum of
doubles is one exact Python integer, in units of 2^-1074, the smallest double: every double is a whole
number of them. Adding integers is associative and commutative, merged states are equal as values, and the
final result is rounded once, correctly (the "long accumulator" of Kulisch, done with big integers).

Queries of one cluster, such as the turns of one conversation, resemble each other, so they are less evidence than
independent ones. The standard error of their mean counts clusters instead (Liang and Zeger, "Longitudinal data
analysis using generalized linear models", Biometrika 1986; Cameron and Miller, "A practitioner's guide to
cluster-robust inference", Journal of Human Resources 2015),

    se² = (1/n²) · Σ_c (Σ_{i in c} (x_i - mean))² · G/(G - 1),    G = (Σ_c m_c)² / Σ_c m_c²,

where m_c is the size of a cluster. G is Kish's effective number ("Survey sampling", 1965): the number of clusters if
all have one size, and less otherwise. With the plain number, intervals over uneven clusters hold too rarely.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray, HashArray, IntArray

_UNIT = 1074  # sums are in units of 2^-1074, and squares in units of 2^-2148
_HALF = 27
_LOW_MASK = (1 << _HALF) - 1
_MOST = 1 << 24


@dataclass(frozen=True)
class Moments:
    """Count, exact sum, exact sum of squares, and the extremes of m metrics over some queries.

    Results beyond the range of a double raise OverflowError.
    """

    count: int  # number of queries
    sums: tuple[int, ...]  # per metric, Σx in units of 2^-1074
    squares: tuple[int, ...]  # per metric, Σx² in units of 2^-2148
    lowest: tuple[float, ...]  # per metric, the smallest value; ∞ over no query
    highest: tuple[float, ...]  # per metric, the largest value; -∞ over no query

    @classmethod
    def zero(cls, metrics: int) -> "Moments":
        """The state of no query at all."""
        return cls(0, (0,) * metrics, (0,) * metrics, (math.inf,) * metrics, (-math.inf,) * metrics)

    @classmethod
    def of(cls, values: FloatArray) -> "Moments":
        """The state of n queries.

        Args:
            values: float64[n, m].

        Raises:
            ValueError: a value is not finite.

        >>> Moments.of(np.array([[0.1], [0.2], [0.3]])).means()
        (0.2,)
        """
        if not np.isfinite(values).all():
            raise ValueError("only finite values have moments")
        columns = np.ascontiguousarray(values.T)
        sums, squares = zip(*(_exact_sums(column) for column in columns), strict=True) if len(columns) else ((), ())
        lowest, highest = columns.min(axis=1, initial=math.inf), columns.max(axis=1, initial=-math.inf)
        return cls(len(values), tuple(sums), tuple(squares), tuple(lowest.tolist()), tuple(highest.tolist()))

    def merge(self, other: "Moments") -> "Moments":
        """The state of both sets of queries; associative and commutative, with `zero` neutral."""
        return Moments(
            self.count + other.count,
            tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)),
            tuple(a + b for a, b in zip(self.squares, other.squares, strict=True)),
            tuple(map(min, self.lowest, other.lowest)),
            tuple(map(max, self.highest, other.highest)),
        )

    def totals(self) -> tuple[float, ...]:
        """Σx per metric, correctly rounded."""
        return tuple(float(Fraction(total, 1 << _UNIT)) for total in self.sums)

    def means(self) -> tuple[float, ...]:
        """The mean per metric, correctly rounded; NaN over no query."""
        if self.count == 0:
            return (math.nan,) * len(self.sums)
        return tuple(float(Fraction(total, self.count << _UNIT)) for total in self.sums)

    def successes(self) -> tuple[int | None, ...]:
        """The number of values that are 1, per metric; None unless all values are 0 or 1.

        Between 0 and 1 no square exceeds its value, and only 0 and 1 equal theirs: so the test is Σx² = Σx.

        >>> Moments.of(np.array([[1.0, 0.5], [0.0, 1.0], [1.0, 0.5]])).successes()
        (2, None)
        """
        return tuple(
            total >> _UNIT if 0.0 <= low <= high <= 1.0 and square == total << _UNIT else None
            for total, square, low, high in zip(self.sums, self.squares, self.lowest, self.highest, strict=True)
        )

    def variances(self) -> tuple[float, ...]:
        """The unbiased sample variance per metric (divisor n - 1), correctly rounded; NaN below two queries."""
        if self.count < 2:
            return (math.nan,) * len(self.sums)
        divisor = self.count * (self.count - 1) << (2 * _UNIT)
        return tuple(
            float(Fraction(self.count * square - total * total, divisor))
            for total, square in zip(self.sums, self.squares, strict=True)
        )

    def standard_errors(self) -> tuple[float, ...]:
        """The standard error of the mean, √(s²/n), per metric; NaN below two queries."""
        return tuple(math.sqrt(variance / self.count) if self.count > 1 else math.nan for variance in self.variances())


def _exact_sums(column: FloatArray) -> tuple[int, int]:
    """Σx in units of 2^-1074 and Σx² in units of 2^-2148."""
    parts = [_exact_sums_of_part(column[first : first + _MOST]) for first in range(0, len(column), _MOST)]
    return sum(total for total, _ in parts), sum(square for _, square in parts)


def _exact_sums_of_part(column: FloatArray) -> tuple[int, int]:
    """As `_exact_sums`, of at most `_MOST` values.

    Values of one exponent add up as whole numbers. These are added up in halves, by NumPy's histogram, whose doubles
    hold 2^24 numbers of up to 28 bits exactly.
    """
    fraction, exponent = np.frexp(column)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)  # x = mantissa · 2^(exponent - 53)
    lowest = int(exponent.min())
    place = (exponent - lowest).astype(np.int64)
    high, low = mantissa >> _HALF, mantissa & _LOW_MASK
    terms = [high, low]
    for product in (high * high, high * low, low * low):  # below 2^54
        terms += [product >> _HALF, product & _LOW_MASK]
    sums = [np.bincount(place, term).tolist() for term in terms]
    total = square = 0
    for step, parts in enumerate(zip(*sums, strict=True)):
        if any(parts):
            shift = lowest + step - 53 + _UNIT
            whole, *squares = ((int(parts[i]) << _HALF) + int(parts[i + 1]) for i in (0, 2, 4, 6))
            total += _shifted(whole, shift)
            square += _shifted((squares[0] << 2 * _HALF) + (squares[1] << (_HALF + 1)) + squares[2], 2 * shift)
    return total, square


def _shifted(value: int, bits: int) -> int:
    # Subnormal numbers have fewer mantissa bits; the bits shifted out of them are zero.
    return value << bits if bits >= 0 else value >> -bits


@dataclass(frozen=True, eq=False)
class ClusterTotals:
    """Sums of c columns by cluster, in a state that merges: a cluster's queries may be anywhere."""

    hashes: HashArray = field(default_factory=lambda: np.zeros(0, np.uint64))  # uint64[g], one per cluster, ascending
    sums: IntArray = field(default_factory=lambda: np.zeros((0, 0), np.int64))  # int64[g, c]

    @classmethod
    def of(cls, hashes: HashArray, rows: IntArray) -> "ClusterTotals":
        """The state of n queries.

        Args:
            hashes: uint64[n], the hash of each query's cluster.
            rows: int64[n, c], values as whole numbers.

        >>> ClusterTotals.of(np.array([7, 3, 7], np.uint64), np.array([[1], [5], [2]])).sums.tolist()
        [[5], [3]]
        """
        if not len(hashes):
            return cls()
        clusters, place = np.unique(hashes, return_inverse=True)
        sums = np.zeros((len(clusters), rows.shape[1]), np.int64)
        np.add.at(sums, place, rows)
        return cls(clusters, sums)

    def merge(self, other: "ClusterTotals") -> "ClusterTotals":
        """The state of both sets of queries; associative and commutative, with `ClusterTotals()` neutral."""
        if not len(self.hashes) or not len(other.hashes):
            return self if len(self.hashes) else other
        return ClusterTotals.of(np.concatenate([self.hashes, other.hashes]), np.concatenate([self.sums, other.sums]))

    def shares(self, number: int) -> Iterator[tuple[int, "ClusterTotals"]]:
        """Split the state by hash, so that each cluster is in one part; with the numbers of the parts."""
        part = (self.hashes % np.uint64(number)).astype(np.int64)
        for item in np.unique(part).tolist():
            yield item, ClusterTotals(self.hashes[part == item], self.sums[part == item])


@dataclass(frozen=True)
class ClusterStatistics:
    """The statistics of one column over clusters."""

    count: float  # effective number of clusters G
    standard_error: float  # standard error of the mean over the queries; NaN below two effective clusters
    lowest: float  # the smallest mean of a cluster
    highest: float  # the largest mean of a cluster
    events: int  # number of clusters whose sum is not 0


@dataclass(frozen=True)
class ClusterMoments:
    """Exact moments of c columns over whole clusters, in a state that merges."""

    # Per column, the position of the column that counts its queries; for such a column, its own.
    weights: tuple[int, ...]
    sums: tuple[int, ...]  # per column, ΣT, where T is the sum of a cluster
    squares: tuple[int, ...]  # ΣT²
    products: tuple[int, ...]  # ΣT·m, where m is the cluster's number of queries
    lowest: tuple[float, ...]  # per column, the smallest T/m; ∞ over no query
    highest: tuple[float, ...]  # per column, the largest T/m; -∞ over no query
    events: tuple[int, ...]  # per column, the number of clusters whose sum is not 0

    @classmethod
    def of(cls, clusters: ClusterTotals, weights: tuple[int, ...]) -> "ClusterMoments":
        """The state of g whole clusters.

        Args:
            clusters: sums by cluster.
            weights: as in the class.
        """
        sums = clusters.sums.reshape(len(clusters.hashes), len(weights))
        sizes = sums[:, list(weights)]
        known = sizes > 0
        means = np.divide(sums, sizes, out=np.full(sums.shape, np.nan), where=known)
        low = np.where(known, means, math.inf).min(axis=0, initial=math.inf)
        high = np.where(known, means, -math.inf).max(axis=0, initial=-math.inf)
        events = np.count_nonzero(sums, axis=0)
        totals, squares, products = (_exact_products(sums, factor) for factor in (np.ones_like(sums), sums, sizes))
        extremes = tuple(low.tolist()), tuple(high.tolist())
        return cls(weights, totals, squares, products, *extremes, tuple(events.tolist()))

    def merge(self, other: "ClusterMoments") -> "ClusterMoments":
        """The state of both sets of clusters, which have none in common; associative and commutative."""
        return ClusterMoments(
            self.weights,
            _added(self.sums, other.sums),
            _added(self.squares, other.squares),
            _added(self.products, other.products),
            tuple(map(min, self.lowest, other.lowest)),
            tuple(map(max, self.highest, other.highest)),
            _added(self.events, other.events),
        )

    def result(self, column: int, scale: float) -> ClusterStatistics:
        """The statistics of one column.

        Args:
            column: its position.
            scale: whole numbers per unit of the metric.
        """
        weight = self.weights[column]
        queries, sizes = self.sums[weight], self.squares[weight]
        total, square, products = self.sums[column], self.squares[column], self.products[column]
        if not queries:
            return ClusterStatistics(0.0, math.nan, math.inf, -math.inf, 0)
        count, mean = Fraction(queries * queries, sizes), Fraction(total, queries)
        error = math.nan
        if count >= 2:
            between = square - 2 * mean * products + mean * mean * sizes
            error = math.sqrt(float(between / (queries * queries) * count / (count - 1))) / scale
        ends = self.lowest[column] / scale, self.highest[column] / scale
        return ClusterStatistics(float(count), error, *ends, self.events[column])


def _added(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


_DIGIT = 22  # three digits hold 64 bits, and 2^18 products of two digits are below 2^63
_ROWS, _CELLS = 1 << 18, 1 << 20


def _exact_products(one: IntArray, other: IntArray) -> tuple[int, ...]:
    """Σ one · other by column, of int64[g, c]: digits are multiplied as whole numbers of 64 bits."""
    total = np.zeros(one.shape[1], object)
    step = max(1, min(_ROWS, _CELLS // max(1, one.shape[1])))
    for start in range(0, len(one), step):
        rows = slice(start, start + step)
        digits, others = _digits(one[rows]), _digits(other[rows])
        for place, other_place in np.ndindex(len(digits), len(others)):
            summed = np.einsum("gc,gc->c", digits[place], others[other_place])
            total += summed.astype(object) << _DIGIT * (place + other_place)
    return tuple(total.tolist())


def _digits(numbers: IntArray) -> list[IntArray]:
    """The digits of whole numbers, lowest first; the highest one has the sign."""
    low = (1 << _DIGIT) - 1
    return [numbers & low, numbers >> _DIGIT & low, numbers >> 2 * _DIGIT]
