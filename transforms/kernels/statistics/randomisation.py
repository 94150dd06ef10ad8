"""The paired randomisation (sign-flip) test, from a state that merges and does not grow with the queries.

Under the null hypothesis the difference of two configurations at a query is as likely to be d as -d, for
all queries jointly (Fisher 1935). Flipping the signs of whole blocks of queries is a subgroup of all those
sign flips, and a randomisation test over any subgroup holds its level exactly (Hemerik and Goeman, "Exact
testing with random permutations", TEST 2018), as long as the blocks do not depend on the differences: here
hashes choose them. Fewer blocks only cost power, about as a t test loses some with as many degrees of
freedom less: with 1,024 blocks the loss is negligible.
"""

from dataclasses import dataclass

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray, HashArray, IntArray, offsets_of, stable_order
from rankbeam.transforms.kernels.hashing import combine, mix

_BITS = 10
LIMIT = 1 << _BITS  # queries up to here are a block each
LARGEST_DIFFERENCE = 1 << 33
ENUMERATED = 16  # blocks whose sign vectors are all tried
FEW = 20
MOST_FLIPS = 100_000
_EXACT_BITS = 52  # T - 2·(a part of T) stays below 2^53
_WORDS_AT_ONCE = 8  # 512 flips of 1,024 blocks are 4 MB of doubles: they stay in the processor's cache
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The summed differences of m metrics between two configurations, by blocks of queries.

    Up to LIMIT queries each one is its own block; beyond, those are one block whose hashes have the same top ten
    bits. The form depends on the number of queries alone and all sums are of whole numbers: any order and any tree
    of merging gives the same state. At most 2^30 queries fit.

    Attributes:
        count: number of queries.
        keys: uint64[b], ascending: hashes of the queries, or, beyond LIMIT of them, 0 to LIMIT - 1.
        sums: int64[b, m], sum of the block's differences, in the caller's unit. Equal keys are in the order of
            their sums.
    """

    count: int
    keys: HashArray
    sums: IntArray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Blocks):
            return NotImplemented
        same_keys = self.count == other.count and np.array_equal(self.keys, other.keys)
        return same_keys and np.array_equal(self.sums, other.sums)

    @classmethod
    def zero(cls, metrics: int) -> "Blocks":
        """The state of no query at all."""
        return cls(0, np.zeros(0, np.uint64), np.zeros((0, metrics), np.int64))

    @classmethod
    def of(cls, hashes: HashArray, differences: IntArray) -> "Blocks":
        """The state of n queries.

        Args:
            hashes: uint64[n], hash of each query; equal hashes do no harm.
            differences: int64[n, m], differences of the metrics as whole numbers of a fixed unit, from -2^33 to
                2^33: 2^-32 is a fine unit for metrics between 0 and 1.

        Raises:
            ValueError: a difference is beyond ±2^33, or there are not as many hashes as differences.

        >>> Blocks.of(np.array([7, 3], np.uint64), np.array([[1], [-2]])).sums.tolist()
        [[-2], [1]]
        """
        if len(hashes) != len(differences):
            raise ValueError(f"{len(hashes)} hashes do not match {len(differences)} rows of differences")
        if differences.size and max(int(differences.max()), -int(differences.min())) > LARGEST_DIFFERENCE:
            raise ValueError("a difference is beyond ±2^33 units; choose a larger unit")
        if len(hashes) > LIMIT:
            keys, sums = _folded(hashes, differences)
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
        return (self.keys, self.sums) if self.count > LIMIT else _folded(self.keys, self.sums)

    def p_values(self, seed: int, flips: int = 10_000) -> FloatArray:
        """The two-sided p-value per metric that the true mean difference is 0, of the paired randomisation test.

        It is the share of sign vectors with |T*| ≥ |T|, T the sum of all differences. As these were rounded to whole
        units, which breaks ties, T* may fall short of T by a unit for each block that is not 0. Up to 16 such blocks
        all sign vectors are enumerated. Beyond, each block's signs are drawn by hashing its key with the seed, and
        p = (1 + reached) / (1 + flips), which holds its level (Phipson and Smyth, "Permutation p-values should never
        be zero", SAGMB 2010). Where fewer than 20 flips reach |T|, their number goes on to 100,000, so that
        corrections for hundreds of comparisons still separate p-values. The level stays exact at any α: a
        metric that goes on has p < 21 / (1 + flips) before, so either p alone decides on which side of α it falls.

        The result depends on the state, the seed and the number of flips alone. Sums of the products with signs are
        whole numbers below 2^53 and therefore exact, however they are added up; differences whose sizes add up to
        2^52 units or more are rounded to larger units, of a power of 2, first.

        Args:
            seed: any whole number; its lowest 64 bits count.
            flips: number of random sign vectors, at least 1.

        Returns:
            float64[m]; 1 where all differences are 0, NaN below two queries.

        Raises:
            ValueError: there are no flips.

        >>> Blocks.of(np.arange(5, dtype=np.uint64), np.array([[1, 0]] * 5) << 20).p_values(0).tolist()
        [0.0625, 1.0]
        """
        if flips < 1:
            raise ValueError("the test takes at least one flip")
        if self.count < 2:
            return np.full(self.sums.shape[1], np.nan)
        nonzero = self.sums != 0
        p_values = np.ones(self.sums.shape[1])
        enumerated = nonzero.sum(axis=0) <= ENUMERATED
        for metric in np.flatnonzero(enumerated):
            p_values[metric] = _enumerated_p_value(self.sums[nonzero[:, metric], metric])
        if not enumerated.all():
            signs = combine(self.keys, np.full(len(self.keys), seed & 0xFFFFFFFFFFFFFFFF, np.uint64))
            p_values[~enumerated] = _sampled_p_values(signs, _small_enough(self.sums[:, ~enumerated]), flips)
        return p_values


def _folded(hashes: HashArray, differences: IntArray) -> tuple[HashArray, IntArray]:
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


def _sampled_p_values(signs: HashArray, blocks: FloatArray, flips: int) -> FloatArray:
    reached = _reached(signs, blocks, 0, flips)
    p_values = (1 + reached) / (1 + flips)
    few = reached < FEW
    if flips < MOST_FLIPS and few.any():
        reached[few] += _reached(signs, blocks[:, few], flips, MOST_FLIPS)
        p_values[few] = (1 + reached[few]) / (1 + MOST_FLIPS)
    return p_values


def _reached(signs: HashArray, blocks: FloatArray, first: int, last: int) -> IntArray:
    """How many of the flips from `first` to `last` - 1 have |T*| ≥ |T|.

    Each block has its own SplitMix64 generator, whose state is its sign key; flip r takes bit r % 64 of the generator's
    word r // 64. To compute the words again costs a twentieth of the product with them, so none are kept.

    Args:
        signs: uint64[b].
        blocks: float64[b, m], whole numbers.
        first: flip to begin with.
        last: flip to end before.

    Returns:
        int64[m].
    """
    observed = blocks.sum(axis=0)[:, np.newaxis]
    least = np.abs(observed) - np.count_nonzero(blocks, axis=0)[:, np.newaxis]
    columns = np.ascontiguousarray(blocks.T)
    reached = np.zeros(len(columns), np.int64)
    for word in range(first // 64, -(-last // 64), _WORDS_AT_ONCE):
        steps = np.arange(word + 1, word + 1 + _WORDS_AT_ONCE, dtype=np.uint64)
        words = mix(signs[:, np.newaxis] + steps * _GOLDEN).astype("<u8", copy=False)
        flipped = np.unpackbits(words.view(np.uint8), axis=1)[:, max(first - 64 * word, 0) : last - 64 * word]
        # BLAS takes half the time on an idle machine, but ten times as long on a busy one, where its threads wait for
        # each other at every one of these small products; einsum has no threads.
        totals = observed - 2.0 * np.einsum("mb,bf->mf", columns, flipped.astype(np.float64))
        reached += np.count_nonzero(np.abs(totals) >= least, axis=1)
    return reached
