"""Standard errors of a mean over queries that come in clusters, such as the turns of one conversation.

Queries of one cluster resemble each other, so they are less evidence than as many independent ones. The standard error
counts clusters instead (Liang and Zeger, "Longitudinal data analysis using generalized linear models", Biometrika
1986; Cameron and Miller, "A practitioner's guide to cluster-robust inference", Journal of Human Resources 2015),

    se² = (1/n²) · Σ_c (Σ_{i in c} (x_i - mean))² · G/(G - 1),    G = (Σ_c m_c)² / Σ_c m_c²,

where m_c is the size of a cluster. G is Kish's effective number ("Survey sampling", 1965): the number of clusters if
all have one size, and less otherwise. With the plain number, intervals over uneven clusters hold too rarely.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from rankbeam.transforms.kernels.arrays import HashArray, IntArray
from rankbeam.transforms.kernels.statistics.moments import Moments

_UNIT, _UNIT_SQUARED = 1074, 2148  # `Moments` counts in units of 2^-1074, and squares in units of 2^-2148


@dataclass(frozen=True, eq=False)
class ClusterTotals:
    """Sums of c columns by cluster, in a state that merges: a cluster's queries may be anywhere.

    Attributes:
        hashes: uint64[g], one per cluster, ascending.
        sums: int64[g, c].
    """

    hashes: HashArray = field(default_factory=lambda: np.zeros(0, np.uint64))
    sums: IntArray = field(default_factory=lambda: np.zeros((0, 0), np.int64))

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
        """The state in parts by hash, so that each cluster is in one part, with the parts' numbers."""
        part = (self.hashes % np.uint64(number)).astype(np.int64)
        for item in np.unique(part).tolist():
            yield item, ClusterTotals(self.hashes[part == item], self.sums[part == item])


@dataclass(frozen=True)
class Clustered:
    """The statistics of one column over clusters.

    Attributes:
        count: effective number of clusters G.
        standard_error: standard error of the mean over the queries; NaN below two effective clusters.
        lowest, highest: extremes of the clusters' means.
        events: number of clusters whose sum is not 0.
    """

    count: float
    standard_error: float
    lowest: float
    highest: float
    events: int


@dataclass(frozen=True)
class ClusterMoments:
    """Exact moments of c columns over whole clusters, in a state that merges.

    Attributes:
        weights: per column, the position of the column that counts its queries; for such a column, its own.
        totals: moments of the clusters' sums T.
        weighted: moments of T + m, where m is the cluster's number of queries, from which ΣT·m follows.
        lowest, highest: per column, the extremes of T/m; ∞ and -∞ over no query.
        events: per column, the number of clusters whose sum is not 0.
    """

    weights: tuple[int, ...]
    totals: Moments
    weighted: Moments
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    events: tuple[int, ...]

    @classmethod
    def of(cls, clusters: ClusterTotals, weights: tuple[int, ...]) -> "ClusterMoments":
        """The state of g whole clusters.

        Args:
            clusters: sums by cluster; below 2^52 their moments are exact.
            weights: as in the class.
        """
        sums = clusters.sums.reshape(len(clusters.hashes), len(weights)).astype(np.float64)
        sizes = sums[:, list(weights)]
        known = sizes > 0
        means = np.divide(sums, sizes, out=np.full(sums.shape, np.nan), where=known)
        low = np.where(known, means, math.inf).min(axis=0, initial=math.inf)
        high = np.where(known, means, -math.inf).max(axis=0, initial=-math.inf)
        events = np.count_nonzero(sums, axis=0)
        totals, weighted = Moments.of(sums), Moments.of(sums + sizes)
        return cls(weights, totals, weighted, tuple(low.tolist()), tuple(high.tolist()), tuple(events.tolist()))

    def merge(self, other: "ClusterMoments") -> "ClusterMoments":
        """The state of both sets of clusters, which have none in common; associative and commutative."""
        return ClusterMoments(
            self.weights,
            self.totals.merge(other.totals),
            self.weighted.merge(other.weighted),
            tuple(map(min, self.lowest, other.lowest)),
            tuple(map(max, self.highest, other.highest)),
            tuple(a + b for a, b in zip(self.events, other.events, strict=True)),
        )

    def result(self, column: int, scale: float) -> Clustered:
        """The statistics of one column.

        Args:
            column: its position.
            scale: whole numbers per unit of the metric.
        """
        weight = self.weights[column]
        squares = self.totals.squares
        queries, sizes = self.totals.sums[weight] >> _UNIT, squares[weight] >> _UNIT_SQUARED
        total, square = self.totals.sums[column] >> _UNIT, squares[column] >> _UNIT_SQUARED
        if not queries:
            return Clustered(0.0, math.nan, math.inf, -math.inf, 0)
        products = ((self.weighted.squares[column] >> _UNIT_SQUARED) - square - sizes) // 2
        count, mean = Fraction(queries * queries, sizes), Fraction(total, queries)
        error = math.nan
        if count >= 2:
            between = square - 2 * mean * products + mean * mean * sizes
            error = math.sqrt(float(between / (queries * queries) * count / (count - 1))) / scale
        ends = self.lowest[column] / scale, self.highest[column] / scale
        return Clustered(float(count), error, *ends, self.events[column])
