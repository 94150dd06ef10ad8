"""Sums that do not depend on the order of their terms, and the statistics drawn from them.

Floating-point addition is not associative, so a mean would depend on bundles and workers. Here a sum of
doubles is one exact Python integer, in units of 2^-1074, the smallest double: every double is a whole
number of them. Adding integers is associative and commutative, merged states are equal as values, and the
final result is rounded once, correctly (the "long accumulator" of Kulisch, done with big integers).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray

_UNIT_EXPONENT = 1074
_HALF = 27
_LOW_MASK = (1 << _HALF) - 1
_MOST = 1 << 24


@dataclass(frozen=True)
class Moments:
    """Count, exact sum, exact sum of squares, and the extremes of m metrics over some queries.

    Results beyond the range of a double raise OverflowError.

    Attributes:
        count: number of queries.
        sums: per metric, Σx in units of 2^-1074.
        squares: per metric, Σx² in units of 2^-2148.
        lowest, highest: per metric, the extreme values; ∞ and -∞ over no query.
    """

    count: int
    sums: tuple[int, ...]
    squares: tuple[int, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]

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
        return tuple(float(Fraction(total, 1 << _UNIT_EXPONENT)) for total in self.sums)

    def means(self) -> tuple[float, ...]:
        """The mean per metric, correctly rounded; NaN over no query."""
        if self.count == 0:
            return (math.nan,) * len(self.sums)
        return tuple(float(Fraction(total, self.count << _UNIT_EXPONENT)) for total in self.sums)

    def successes(self) -> tuple[int | None, ...]:
        """The number of values that are 1, per metric; None unless all values are 0 or 1.

        Between 0 and 1 no square exceeds its value, and only 0 and 1 equal theirs: so the test is Σx² = Σx.

        >>> Moments.of(np.array([[1.0, 0.5], [0.0, 1.0], [1.0, 0.5]])).successes()
        (2, None)
        """
        return tuple(
            total >> _UNIT_EXPONENT if 0.0 <= low <= high <= 1.0 and square == total << _UNIT_EXPONENT else None
            for total, square, low, high in zip(self.sums, self.squares, self.lowest, self.highest, strict=True)
        )

    def variances(self) -> tuple[float, ...]:
        """The unbiased sample variance per metric (divisor n - 1), correctly rounded; NaN below two queries."""
        if self.count < 2:
            return (math.nan,) * len(self.sums)
        divisor = self.count * (self.count - 1) << (2 * _UNIT_EXPONENT)
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
            shift = lowest + step - 53 + _UNIT_EXPONENT
            whole, *squares = ((int(parts[i]) << _HALF) + int(parts[i + 1]) for i in (0, 2, 4, 6))
            total += _shifted(whole, shift)
            square += _shifted((squares[0] << 2 * _HALF) + (squares[1] << (_HALF + 1)) + squares[2], 2 * shift)
    return total, square


def _shifted(value: int, bits: int) -> int:
    # Subnormal numbers have fewer mantissa bits; the bits shifted out of them are zero.
    return value << bits if bits >= 0 else value >> -bits
