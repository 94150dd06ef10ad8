"""The keyed Poisson bootstrap: replicates of a mean that line up everywhere, without a join.

The weight of a query in a replicate is a Poisson(1) number drawn from a hash of the query's id, the replicate's number
and a seed (Chamandy, Muralidharan, Najmi and Naidu, "Estimating uncertainty for massive data streams", 2012; Hanley and
MacGibbon, "Creating non-parametric bootstrap samples using Poisson frequencies", 2006). So a query weighs the same in
every configuration, slice, worker and run, and the difference of two means may be taken replicate by replicate.

Only whole numbers are summed, so the sums are exact, and the same for any order, bundling and number of workers.
"""

import functools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from rankbeam.transforms.kernels.arrays import ByteArray, FloatArray, HashArray, IntArray, one_thread
from rankbeam.transforms.kernels.hashing import GOLDEN, mix
from rankbeam.transforms.kernels.statistics.intervals import student_interval, student_t_quantile

LIMIT = 1024  # up to this many queries, the state keeps them; beyond, it keeps only the sums of every replicate

SMALL = 20  # below this many queries the bootstrap's interval is too short, and Student's is used

_WORD = (1 << 64) - 1
_DRAWS = 4  # from one hash of 64 bits
# P(weight ≥ 1), P(weight ≥ 2), … in units of 2^-16: the mean is 1 exactly, the variance 1 to four digits.
_TAILS = (41427, 17317, 5263, 1244, 240, 39, 5, 1)
_BLOCK = 256  # queries whose weights stay in the processor's cache
_SHARE = 4096  # queries that one thread sums up at once
_CACHED = 32  # blocks of weights that are cached for the next configuration or slice


@dataclass(frozen=True, eq=False)
class Replicates:
    """Bootstrap sums of c columns over some queries, in a state that merges.

    Up to `LIMIT` queries the state holds them, which is less than their sums; beyond, the sums. The form depends on
    the number of queries alone, and all sums are exact: merging is associative and commutative.
    """

    replicates: int  # number of replicates b
    seed: int
    count: int  # number of queries
    hashes: HashArray  # uint64[n], of the queries' ids, ascending; empty beyond the limit
    rows: IntArray  # int64[n, c]; empty beyond the limit
    sums: IntArray | None = None  # int64[c, b], the weighted sums of every replicate; None up to the limit

    @classmethod
    def of(cls, hashes: HashArray, rows: IntArray, replicates: int, seed: int) -> "Replicates":
        """The state of n queries.

        Args:
            hashes: uint64[n], of the queries' ids.
            rows: int64[n, c], from -2^38 to 2^38: the weighted sum of 4,096 stays below 2^53, and so is exact.
            replicates: number of replicates.
            seed: seed of the weights.
        """
        if len(hashes) > LIMIT:
            sums = weighted_sums(hashes, rows, replicates, seed)
            return cls(replicates, seed, len(hashes), hashes[:0], rows[:0], sums)
        order = np.lexsort((*rows.T[::-1], hashes)) if len(np.unique(hashes)) < len(hashes) else np.argsort(hashes)
        return cls(replicates, seed, len(hashes), hashes[order], rows[order])

    def merge(self, other: "Replicates") -> "Replicates":
        """The state of both sets of queries."""
        count = self.count + other.count
        if count <= LIMIT:
            hashes, rows = np.concatenate([self.hashes, other.hashes]), np.concatenate([self.rows, other.rows])
            return Replicates.of(hashes, rows, self.replicates, self.seed)
        return Replicates(
            self.replicates, self.seed, count, self.hashes[:0], self.rows[:0], self.totals() + other.totals()
        )

    def totals(self) -> IntArray:
        """int64[c, b]: the weighted sum of every column in every replicate."""
        if self.sums is not None:
            return self.sums
        return weighted_sums(self.hashes, self.rows, self.replicates, self.seed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Replicates):
            return NotImplemented
        mine, theirs = (self.replicates, self.seed, self.count), (other.replicates, other.seed, other.count)
        if mine != theirs or (self.sums is None) != (other.sums is None):
            return False
        if self.sums is not None and other.sums is not None:
            return np.array_equal(self.sums, other.sums)
        return np.array_equal(self.hashes, other.hashes) and np.array_equal(self.rows, other.rows)

    __hash__ = None  # type: ignore[assignment]


def weighted_sums(hashes: HashArray, rows: IntArray, replicates: int, seed: int) -> IntArray:
    """Σ weight · value over the queries, for every column and replicate.

    Args:
        hashes: uint64[n], of the queries' ids.
        rows: int64[n, c], as `Replicates.of` has them.
        replicates: number of replicates b.
        seed: seed of the weights.

    Returns:
        int64[c, b].
    """
    starts = range(0, len(hashes), _SHARE)
    if len(starts) == 1:
        return _share_of_sums(hashes, rows, replicates, seed)
    total = np.zeros((rows.shape[1], replicates), np.int64)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        shares = [
            pool.submit(_share_of_sums, hashes[start : start + _SHARE], rows[start : start + _SHARE], replicates, seed)
            for start in starts
        ]
        for share in shares:
            total += share.result()
    return total


def _share_of_sums(hashes: HashArray, rows: IntArray, replicates: int, seed: int) -> IntArray:
    total = np.zeros((rows.shape[1], replicates))
    with one_thread():
        for start in range(0, len(hashes), _BLOCK):
            block = slice(start, start + _BLOCK)
            drawn = _weights(np.ascontiguousarray(hashes[block]).tobytes(), replicates, seed)
            total += rows[block].T.astype(np.float64) @ drawn.astype(np.float64)
    return total.astype(np.int64)


def weights(hashes: HashArray, replicates: int, seed: int) -> ByteArray:
    """The weight of every query in every replicate.

    Args:
        hashes: uint64[n], of the queries' ids.
        replicates: number of replicates b.
        seed: any whole number.

    Returns:
        uint8[n, b], Poisson(1) numbers from 0 to 8 (larger ones have a probability of 10^-6).

    >>> drawn = weights(np.arange(1000, dtype=np.uint64), 100, seed=0)
    >>> bool(abs(drawn.mean() - 1.0) < 0.02), bool(abs(drawn.var() - 1.0) < 0.03)
    (True, True)
    """
    words = -(-replicates // _DRAWS)
    numbers = np.arange(1, words + 1, dtype=np.uint64) * GOLDEN
    streams = mix(numbers + np.uint64(seed * 0xD1342543DE82EF95 & _WORD))
    draws = mix(mix(hashes)[:, None] ^ streams).astype("<u8", copy=False).view(np.uint16)[:, :replicates]
    drawn, above = np.zeros(draws.shape, np.uint8), np.empty(draws.shape, np.bool_)
    for tail in _TAILS:
        np.less(draws, np.uint16(tail), out=above)
        np.add(drawn, above.view(np.uint8), out=drawn)
    return drawn


@functools.lru_cache(maxsize=_CACHED)
def _weights(hashes: bytes, replicates: int, seed: int) -> ByteArray:
    return weights(np.frombuffer(hashes, np.uint64), replicates, seed)


def bootstrap_interval(
    mean: float, standard_error: float, replicates: FloatArray, count: float, confidence: float = 0.95
) -> tuple[float, float]:
    """The expanded percentile interval of a mean.

    Percentiles of the replicates, at levels that make up for the bootstrap's divisor n and for the estimated variance:
    Φ(√(n/(n-1)) · t quantile), after Hesterberg, "What teachers should know about the bootstrap", The American
    Statistician 69 (2015), section 5.3. Chosen by coverage over percentile, BCa and studentised intervals, which fall
    short for sparse differences or rare successes (`tests/kernels/statistics/test_coverage.py`). For fewer than
    `SMALL` queries it is Student's interval.

    Args:
        mean: sample mean.
        standard_error: standard error of the mean.
        replicates: float64[b], the means of the replicates; NaN where a replicate weighs nothing.
        count: sample size n.
        confidence: share of samples whose interval covers the true mean.

    Returns:
        Lower and upper end; NaN, NaN for fewer than two values.
    """
    means = replicates[~np.isnan(replicates)]
    if count < SMALL or not len(means):
        return student_interval(mean, standard_error, count, confidence)
    quantile = student_t_quantile(0.5 + confidence / 2.0, count - 1) * math.sqrt(count / (count - 1))
    tail = 0.5 * math.erfc(quantile / math.sqrt(2.0))
    low, high = np.quantile(means, [tail, 1.0 - tail])
    return float(low), float(high)
