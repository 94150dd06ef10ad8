"""The bootstrap's weights bit for bit, against plain Python; and when two of its states are equal."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rankbeam.transforms.kernels.statistics.bootstrap import LIMIT, Replicates, weighted_sums, weights

MASK = (1 << 64) - 1


def scrambled(value: int) -> int:
    """SplitMix64's finaliser, as its paper has it."""
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & MASK
    return value ^ value >> 31


def drawn(query: int, replicate: int, seed: int) -> int:
    """A weight: how many of the tails of Poisson(1), to 16 bits, lie above 16 bits of the query's stream."""
    step = 0x9E3779B97F4A7C15
    stream = scrambled(((replicate // 4 + 1) * step + seed * 0xD1342543DE82EF95) & MASK)
    bits = scrambled(scrambled(query) ^ stream) >> 16 * (replicate % 4) & 0xFFFF
    below = [sum(math.exp(-1) / math.factorial(count) for count in range(upto)) for upto in range(1, 9)]
    return sum(bits < round((1 - threshold) * 65536) for threshold in below)


@pytest.mark.parametrize(("replicates", "seed"), [(1, 0), (7, 1), (8, 2**70 + 3)])
def test_every_weight_is_that_of_plain_python(replicates: int, seed: int) -> None:
    hashes = np.random.default_rng(0).integers(0, MASK, 300, np.uint64, endpoint=True)
    expected = [[drawn(int(query), replicate, seed) for replicate in range(replicates)] for query in hashes]
    assert weights(hashes, replicates, seed).tolist() == expected


@pytest.mark.parametrize("count", [0, 1, 4096, 4097])
def test_sums_of_any_number_of_queries_are_those_of_their_weights(count: int) -> None:
    hashes = np.arange(count, dtype=np.uint64)
    rows = np.arange(2 * count, dtype=np.int64).reshape(count, 2)
    drawn_all = weights(hashes, 5, 3).astype(np.int64).reshape(count, 5)
    assert np.array_equal(weighted_sums(hashes, rows, 5, 3), rows.T @ drawn_all)


@pytest.mark.parametrize("count", [3, LIMIT + 1])
def test_states_are_equal_where_all_of_them_is(count: int) -> None:
    hashes, rows = np.arange(count, dtype=np.uint64), np.ones((count, 1), np.int64)
    state = Replicates.of(hashes, rows, 4, 1)
    assert state == Replicates.of(hashes, rows, 4, 1)
    assert state != Replicates.of(hashes, rows + 1, 4, 1)
    assert state != Replicates.of(hashes + np.uint64(1), rows, 4, 1)
    for other in (replace(state, replicates=5), replace(state, seed=2), replace(state, count=count + 1)):
        assert state != other
    assert replace(state, sums=None) != replace(state, sums=state.totals())
