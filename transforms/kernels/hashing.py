"""A stable 64-bit hash of strings, vectorised.

The same string has the same hash in every process, on every machine and in every release. The hash decides
which bucket a query belongs to, makes the dataset's fingerprint, and looks documents up among the judged
ones. It is not cryptographic: a caller that needs certainty compares the strings whose hashes match.
"""

import functools

import numpy as np
import pyarrow as pa

from rankbeam.transforms.kernels.arrays import FloatArray, HashArray, IntArray, StringArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # the increment of SplitMix64
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_MASK = (1 << 64) - 1
_MOST_SCALAR = 32  # below this many strings, Python's integers are faster than a step of NumPy
_BLOCK = 1 << 16  # strings hashed at once: they stay in the processor's cache, which is ten times as fast


def mix(values: HashArray) -> HashArray:
    """Scramble 64-bit values so that every input bit moves every output bit.

    The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
    generators", OOPSLA 2014), a bijection.

    Args:
        values: uint64[n].

    Returns:
        uint64[n].

    >>> mix(np.array([1], np.uint64))
    array([6238072747940578789], dtype=uint64)
    """
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


def hash_strings(strings: StringArray) -> HashArray:
    """Hash every string of an Arrow array; each step takes eight bytes of all strings at once.

    Args:
        strings: Arrow string (or large_string) array of n values, without nulls.

    Returns:
        uint64[n].

    Raises:
        ValueError: a value is null.

    >>> hash_strings(pa.array(["a", "b", "a"]))[[0, 2]].tolist() == [hash_string("a")] * 2
    True
    """
    if strings.null_count:
        raise ValueError("a null has no hash")
    hashes = np.empty(len(strings), np.uint64)
    for first in range(0, len(strings), _BLOCK):
        _hash_block(strings.slice(first, _BLOCK), hashes[first : first + _BLOCK])
    return hashes


def _hash_block(strings: StringArray, state: HashArray) -> None:
    words, start, length = words_of(strings)
    state[:] = mix(length.astype(np.uint64) + GOLDEN)
    if length.min() > 0:
        state[:] = _absorb(state, words[start], length)
    else:
        pending = np.flatnonzero(length > 0)
        state[pending] = _absorb(state[pending], words[start[pending]], length[pending])
    pending = np.flatnonzero(length > 8)
    step = 8
    while len(pending) > _MOST_SCALAR:
        remaining = length[pending] - step
        state[pending] = _absorb(state[pending], words[start[pending] + step], remaining)
        pending = pending[remaining > 8]
        step += 8
    for row in pending.tolist():
        last_words = words[start[row] + step : start[row] + length[row] : 8].tolist()
        last_words[-1] &= _MASK >> 8 * (-int(length[row]) % 8)
        state[row] = functools.reduce(_absorb_one, last_words, int(state[row]))


def _absorb(state: HashArray, word: HashArray, remaining: IntArray) -> HashArray:
    """The state after the next eight bytes; bytes beyond the string's end count as zeros."""
    unused_bits = (8 * np.clip(8 - remaining, 0, 7)).astype(np.uint64)
    return mix((state ^ word & (np.uint64(0xFFFFFFFFFFFFFFFF) >> unused_bits)) + GOLDEN)


def _absorb_one(state: int, word: int) -> int:
    """`_absorb` on Python's integers: for a few strings, a hundred times as fast as a step of NumPy."""
    state = ((state ^ word) + int(GOLDEN)) & _MASK
    state = ((state ^ state >> 30) * int(_MIX_1)) & _MASK
    state = ((state ^ state >> 27) * int(_MIX_2)) & _MASK
    return state ^ state >> 31


def words_of(strings: StringArray) -> tuple[HashArray, IntArray, IntArray]:
    """The strings of an Arrow array as 64-bit words, one for every byte at which a word can begin.

    Args:
        strings: Arrow string (or large_string) array of n values, without nulls.

    Returns:
        uint64[bytes + 1], little endian: the eight bytes that begin at each byte, zeros after the last one;
        int64[n], the byte at which each string begins; int64[n], the length of each string in bytes.

    >>> words, start, length = words_of(pa.array(["ab", "c"]))
    >>> words[start].tolist() == [ord("a") + (ord("b") << 8) + (ord("c") << 16), ord("c")], length.tolist()
    (True, [2, 1])
    """
    _, offset_buffer, data = strings.buffers()
    width = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    offsets = np.zeros(1, np.int64)
    if len(strings):
        stored = np.frombuffer(offset_buffer, width)[strings.offset : strings.offset + len(strings) + 1]
        offsets = stored.astype(np.int64)
    total = int(offsets[-1] - offsets[0])
    padded = np.zeros(total + 8, np.uint8)
    if total:
        padded[:total] = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    words = np.lib.stride_tricks.as_strided(padded[:8].view("<u8"), (total + 1,), (1,))
    return words, offsets[:-1] - offsets[0], np.diff(offsets)


@functools.lru_cache(1 << 12)  # spans of a trace, which are near each other, hash the same id
def hash_string(text: str) -> int:
    """The hash of one string, the same as from `hash_strings`.

    >>> hash_string("q1") == int(hash_strings(pa.array(["q0", "q1"]))[1])
    True
    """
    return int(hash_strings(pa.array([text], pa.string()))[0])


def buckets(strings: StringArray, count: int) -> IntArray:
    """The bucket, from 0 to count - 1, that each string belongs to.

    Args:
        strings: Arrow string array of n values, without nulls.
        count: number of buckets, at least 1.

    Returns:
        int64[n].

    >>> buckets(pa.array(["q1", "q2", "q1"]), 1).tolist()
    [0, 0, 0]
    """
    return (hash_strings(strings) % np.uint64(count)).astype(np.int64)


def combine(*columns: HashArray) -> HashArray:
    """One hash per row, of several hashed columns; the order of the columns matters.

    Args:
        columns: uint64[n] each.

    Returns:
        uint64[n].

    >>> a, b = np.array([1], np.uint64), np.array([2], np.uint64)
    >>> bool(combine(a, b)[0] == combine(b, a)[0])
    False
    """
    state = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        state = mix((state ^ column) + GOLDEN)
    return state


def fingerprints(hashes: HashArray, values: FloatArray) -> HashArray:
    """One fingerprint per column of values; equal columns have equal fingerprints, in any order of the rows.

    A fingerprint is the sum of the hashes of (row, value). So the fingerprints of two disjoint sets of rows add up,
    modulo 2^64, to the fingerprint of their union.

    Args:
        hashes: uint64[n], the hash that identifies each row.
        values: float64[n, m], no NaN; 0 and -0 are equal.

    Returns:
        uint64[m].

    >>> rows, values = np.array([1, 2], np.uint64), np.array([[0.5, 0.5], [1.0, 0.0]])
    >>> bool((fingerprints(rows, values) == fingerprints(rows[::-1], values[::-1])).all())
    True
    """
    bits = np.add(values, 0.0, order="C").view(np.uint64)  # -0 becomes 0
    sums: HashArray = mix((mix(hashes + GOLDEN)[:, np.newaxis] ^ bits) + GOLDEN).sum(axis=0, dtype=np.uint64)
    return sums
