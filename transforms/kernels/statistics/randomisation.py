"""The paired randomisation (sign-flip) test, from a state that merges and does not grow with the queries.

Under the null hypothesis the difference of two configurations at a query is as likely to be d as -d, for
all queries jointly (Fisher 1935). Flipping the signs of whole blocks of queries is a subgroup of all those
sign flips, and a randomisation test over any subgroup holds its level exactly (Hemerik and Goeman, "Exact
testing with random permutations", TEST 2018), as long as the blocks do not depend on the differences: here
hashes choose them. Fewer blocks only cost power, about as much as a t test loses with as many fewer
degrees of freedom: with 1,024 blocks the loss is negligible.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, HashArray, IntArray, offsets_of, stable_order
from rankbeam.transforms.kernels.hashing import GOLDEN, combine, mix

_BITS = 10
LIMIT = 1 << _BITS  # up to this many queries, each is a block
LARGEST_DIFFERENCE = 1 << 43
ENUMERATED, SAMPLED, TILTED = "enumerated", "sampled", "tilted"  # methods, as the tables name them
ENUMERATED_BLOCKS = 16  # up to this many blocks, all sign vectors are tried
FEW = 20
MOST_FLIPS = 100_000
_CLEAR = 2.9  # standard errors, which 37 of 10,000 flips reach
_TILTED, _TILTED_AT_ONCE = 2048, 512
_CERTAIN = 8.0  # 2 · exp(-8²/2) is 3 in 10^14
_TILTED_FROM = 1 << 32  # word of the generators, far from those of the flips
_CHANCES = 65536.0
_STEEPEST = 300.0  # exp(600) is still a number
_EXACT_BITS = 52  # T - 2·(a part of T) stays below 2^53
_WORDS_AT_ONCE = 8  # 512 flips of 1,024 blocks are 4 MB of doubles: they stay in the processor's cache


@dataclass(frozen=True, eq=False)
class Blocks:
    """The summed differences of m metrics between two configurations, by blocks of queries.

    Up to LIMIT queries each one is its own block; beyond, those are one block whose hashes have the same top ten
    bits. The form depends on the number of queries alone and all sums are of whole numbers: any order and any tree
    of merging gives the same state. The sizes of all differences add up to less than 2^63 units: for a metric between
    0 and 1 in units of 2^-32, more than 2^30 queries fit.
    """

    count: int  # number of queries
    keys: HashArray  # uint64[b], ascending: hashes of the queries, or, beyond LIMIT of them, 0 to LIMIT - 1
    # int64[b, m], sum of the block's differences, in the caller's unit. Equal keys are in the order of their sums.
    sums: IntArray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Blocks):
            return NotImplemented
        same_keys = self.count == other.count and np.array_equal(self.keys, other.keys)
        return same_keys and np.array_equal(self.sums, other.sums)

    @classmethod
    def of(cls, hashes: HashArray, differences: IntArray) -> "Blocks":
        """The state of n queries.

        Args:
            hashes: uint64[n], hash of each query, or of its cluster; signs of equal hashes flip together.
            differences: int64[n, m], differences of the metrics as whole numbers of a fixed unit, from -2^43 to
                2^43: 2^-32 is a fine unit for metrics between 0 and 1. A difference of two values that are rounded to
                units may be off by one, so counts need a unit far below 1, too.

        Raises:
            ValueError: a difference is beyond ±2^43, or there are not as many hashes as differences.

        >>> Blocks.of(np.array([7, 3], np.uint64), np.array([[1], [-2]])).sums.tolist()
        [[-2], [1]]
        """
        if len(hashes) != len(differences):
            raise ValueError(f"{len(hashes)} hashes do not match {len(differences)} rows of differences")
        if differences.size and max(int(differences.max()), -int(differences.min())) > LARGEST_DIFFERENCE:
            raise ValueError("a difference is beyond ±2^43 units; choose a larger unit")
        if len(hashes) > LIMIT:
            keys, sums = _sum_buckets(hashes, differences)
        else:
            order = np.lexsort((*differences.T[::-1], hashes))
            keys, sums = hashes[order], differences[order]
        return cls(len(hashes), keys, sums)

    def merge(self, other: "Blocks") -> "Blocks":
        """The state of both sets of queries; associative and commutative, with `zero` neutral.

        Raises:
            ValueError: the states are of different numbers of metrics.
        """
        if self.sums.shape[1] != other.sums.shape[1]:
            raise ValueError(f"{self.sums.shape[1]} metrics do not merge with {other.sums.shape[1]}")
        count = self.count + other.count
        if count <= LIMIT:
            return Blocks.of(np.concatenate((self.keys, other.keys)), np.concatenate((self.sums, other.sums)))
        (keys, mine), (_, others) = self._bucket_sums(), other._bucket_sums()
        return Blocks(count, keys, mine + others)

    def _bucket_sums(self) -> tuple[HashArray, IntArray]:
        return (self.keys, self.sums) if self.count > LIMIT else _sum_buckets(self.keys, self.sums)

    def test(self, seed: int, flips: int = 10_000) -> "RandomisationResult":
        """Two-sided p-values, per metric, that the true mean difference is 0: the paired randomisation test.

        A p-value is the share of sign vectors with |T*| ≥ |T|, T the sum of all differences. As these were rounded to
        whole units, which breaks ties, T* may fall short of T by a unit for each block that is not 0.

        - ENUMERATED: up to 16 such blocks, all sign vectors.
        - SAMPLED: each block's signs are drawn by hashing its key with the seed, and p = (1 + reached) / (1 + flips),
          which holds its level (Phipson and Smyth, "Permutation p-values should never be zero", SAGMB 2010).
        - TILTED: if fewer than 20 flips reach |T|, or would by the normal distribution, signs are drawn by chances
          under which the mean of T* is |T|, and weighted to make up for that: importance sampling by an exponential
          tilt (Bucklew, "Introduction to rare event simulation", 2004, chapter 5). 2,048 of them give the share,
          however small, to within about 4%; 100,000 plain flips give 1 in 1,000 to within 10%. A share that
          Hoeffding's inequality bounds by 3 in 10^14 counts as 0. The p-value is the mean of the one that 100,000
          plain flips would give, and so not below 10^-5.

        The result depends on the state, the seed and the number of flips alone. Sums of the products with signs are
        whole numbers below 2^53 and therefore exact, however they are added up; differences whose sizes add up to
        2^52 units or more are rounded to larger units, of a power of 2, first.

        Args:
            seed: any whole number; its lowest 64 bits count.
            flips: number of random sign vectors, at least 1; from 100,000 on, no signs are tilted.

        Raises:
            ValueError: there are no flips.

        >>> Blocks.of(np.arange(5, dtype=np.uint64), np.array([[1, 0]] * 5) << 20).test(0).p_values.tolist()
        [0.0625, 1.0]
        """
        if flips < 1:
            raise ValueError("the test takes at least one flip")
        keys, sums = _by_key(self.keys, self.sums)
        metrics = sums.shape[1]
        if self.count < 2 or len(keys) < 2:
            return RandomisationResult(np.full(metrics, np.nan), (None,) * metrics)
        nonzero = sums != 0
        p_values, methods = np.ones(metrics), np.full(metrics, SAMPLED, object)
        enumerated = nonzero.sum(axis=0) <= ENUMERATED_BLOCKS
        methods[enumerated] = ENUMERATED
        for metric in np.flatnonzero(enumerated):
            p_values[metric] = _enumerated_p_value(sums[nonzero[:, metric], metric])
        signs = combine(keys, np.full(len(keys), seed & 0xFFFFFFFFFFFFFFFF, np.uint64))
        blocks = _small_enough(sums)
        is_clear = ~enumerated & (flips < MOST_FLIPS) & _is_clear(blocks)
        drawn = ~enumerated & ~is_clear
        if drawn.any():
            reached = _count_extremes(signs, blocks[:, drawn], flips)
            p_values[drawn] = (1 + reached) / (1 + flips)
            is_clear[np.flatnonzero(drawn)[reached < FEW]] = flips < MOST_FLIPS
        if is_clear.any():
            methods[is_clear] = TILTED
            p_values[is_clear] = (1 + MOST_FLIPS * _tilted_shares(signs, blocks[:, is_clear])) / (1 + MOST_FLIPS)
        return RandomisationResult(p_values, tuple(methods.tolist()))


class RandomisationResult(NamedTuple):
    """The p-value of each metric, float64[m], and how it was computed.

    The p-value is 1 if all differences are 0, and NaN below two queries.
    """

    p_values: FloatArray
    methods: tuple[str | None, ...]


def _by_key(keys: HashArray, sums: IntArray) -> tuple[HashArray, IntArray]:
    """The sums by key: queries of one cluster have equal keys, and flip their signs together."""
    starts = np.flatnonzero(np.diff(keys, prepend=~keys[:1]))
    return (keys, sums) if len(starts) == len(keys) else (keys[starts], np.add.reduceat(sums, starts, axis=0))


def _sum_buckets(hashes: HashArray, differences: IntArray) -> tuple[HashArray, IntArray]:
    """The keys and sums of all LIMIT buckets."""
    bucket = (hashes >> np.uint64(64 - _BITS)).astype(np.int64)
    order = stable_order(bucket, LIMIT)
    offsets = offsets_of(bucket[order], LIMIT)
    filled = np.flatnonzero(np.diff(offsets))
    sums = np.zeros((LIMIT, differences.shape[1]), np.int64)
    if len(filled):
        sums[filled] = np.add.reduceat(differences[order], offsets[filled], axis=0)
    return np.arange(LIMIT, dtype=np.uint64), sums


def _enumerated_p_value(blocks: IntArray) -> float:
    totals = np.zeros(1, np.int64)
    for block in blocks:
        totals = np.concatenate((totals + block, totals - block))
    return float(np.mean(np.abs(totals) >= abs(blocks.sum()) - len(blocks)))


def _small_enough(blocks: IntArray) -> FloatArray:
    """The blocks as whole numbers whose sums, with any signs, are exact in doubles."""
    _, exponent = np.frexp(np.abs(blocks).sum(axis=0).astype(np.float64))
    shift = np.maximum(exponent.astype(np.int64) - _EXACT_BITS, 0)
    rounded: IntArray = (blocks + (1 << shift >> 1)) >> shift
    return rounded.astype(np.float64)


def _is_clear(blocks: FloatArray) -> BoolArray:
    """Return whether |T| is so far out that, by the normal distribution, few of the flips would reach it."""
    is_clear: BoolArray = _least(blocks) > _CLEAR * np.sqrt((blocks**2).sum(axis=0))
    return is_clear


def _least(blocks: FloatArray) -> FloatArray:
    """The least |T*| that reaches |T|, per metric: a unit less for each block that is not 0, as all are rounded."""
    least: FloatArray = np.abs(blocks.sum(axis=0)) - np.count_nonzero(blocks, axis=0)
    return least


def _count_extremes(signs: HashArray, blocks: FloatArray, flips: int) -> IntArray:
    """The number of flips with |T*| ≥ |T|.

    Each block has its own SplitMix64 generator, whose state is its sign key; flip r takes bit r % 64 of the generator's
    word r // 64. Computing the words again costs a twentieth of the product with them, so they are not stored.

    Args:
        signs: uint64[b].
        blocks: float64[b, m], whole numbers.
        flips: number of flips.

    Returns:
        int64[m].
    """
    observed = blocks.sum(axis=0)[:, np.newaxis]
    least = _least(blocks)[:, np.newaxis]
    columns = np.ascontiguousarray(blocks.T)
    reached = np.zeros(len(columns), np.int64)
    for word in range(0, -(-flips // 64), _WORDS_AT_ONCE):
        words = _words(signs, word, _WORDS_AT_ONCE)
        flipped = np.unpackbits(words.view(np.uint8), axis=1)[:, : flips - 64 * word]
        # BLAS takes half the time on an idle machine, but ten times as long on a busy one, where its threads wait for
        # each other at every one of these small products; einsum has no threads.
        totals = observed - 2.0 * np.einsum("mb,bf->mf", columns, flipped.astype(np.float64))
        reached += np.count_nonzero(np.abs(totals) >= least, axis=1)
    return reached


def _words(signs: HashArray, first: int, count: int) -> HashArray:
    """Words of the generator of each block, uint64[b, count], from word `first` on."""
    steps = np.arange(first + 1, first + 1 + count, dtype=np.uint64)
    return mix(signs[:, np.newaxis] + steps * GOLDEN).astype("<u8", copy=False)


def _tilted_shares(signs: HashArray, blocks: FloatArray) -> FloatArray:
    """The share of all sign vectors with |T*| ≥ |T|, by importance sampling.

    Signs are those that make a block count towards T, or against it. A block of size a counts against it with a chance
    of 1 / (1 + exp(2 θ a)) in place of a half, in 65,536ths; θ is chosen so that the mean of T* is |T|.

    Args:
        signs: uint64[b].
        blocks: float64[b, m], whole numbers, with a nonzero one for each metric.
    """
    sizes = np.abs(blocks)
    least = _least(blocks)
    allowed = (sizes.sum(axis=0) - least) / 2.0  # the most that blocks that count against T may add up to
    against = np.rint(_CHANCES / (1.0 + np.exp(2.0 * _tilts(sizes, least))))
    chances = np.clip(against, 1.0, _CHANCES / 2.0) / _CHANCES
    weight_for, weight_against = -np.log(2.0 * (1.0 - chances)), -np.log(2.0 * chances)
    limits, steps, start = (chances * _CHANCES).astype(np.uint16), weight_against - weight_for, weight_for.sum(axis=0)
    shares = np.zeros(blocks.shape[1])
    metrics = np.flatnonzero(least < _CERTAIN * np.sqrt((sizes**2).sum(axis=0)))
    for number in range(_TILTED // _TILTED_AT_ONCE if len(metrics) else 0):
        words = _TILTED_AT_ONCE // 4
        draws = _words(signs, _TILTED_FROM + number * words, words).view("<u2")
        for metric in metrics:
            is_against = (draws < limits[:, metric, np.newaxis]).astype(np.float64)
            sides = np.stack((sizes[:, metric], steps[:, metric]))
            lost, logarithms = np.einsum("sb,bf->sf", sides, is_against)
            shares[metric] += np.exp(start[metric] + logarithms[lost <= allowed[metric]]).sum()
    return np.minimum(2.0 * shares / _TILTED, 1.0)


def _tilts(sizes: FloatArray, least: FloatArray) -> FloatArray:
    """θ · a for each block and metric, found by bisection: Σ a · tanh(θ a) is the least sum.

    If that is almost the sum of all sizes, no θ is large enough: the goal is then the sum minus half the largest block.
    """
    spread = np.sqrt((sizes**2).sum(axis=0))
    parts = sizes / spread
    goals = np.minimum(least, sizes.sum(axis=0) - sizes.max(axis=0) / 2.0) / spread
    low, high = np.zeros(len(goals)), np.full(len(goals), 2.0**20)
    for _ in range(60):
        middle = (low + high) / 2.0
        is_below = (parts * np.tanh(middle * parts)).sum(axis=0) < goals
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    tilts: FloatArray = np.minimum(high * parts, _STEEPEST)
    return tilts
