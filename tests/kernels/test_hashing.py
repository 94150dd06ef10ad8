"""The hash decides buckets and fingerprints: it must never change, and must look at nothing but the string."""

from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankbeam.transforms.kernels.hashing import buckets, combine, hash_string, hash_strings, mix

GOLDEN_RATIO = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1
TEXTS = st.text(max_size=30)


def scramble(value: int) -> int:
    """SplitMix64's finaliser on Python's integers."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def absorb(state: int, word: int) -> int:
    return scramble((state ^ word) + GOLDEN_RATIO & MASK)


def slow_hash(text: str) -> int:
    """The hash, eight bytes at a time, on Python's integers."""
    data = text.encode()
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    return reduce(absorb, words, scramble(len(data) + GOLDEN_RATIO & MASK))


@given(texts=st.lists(TEXTS, max_size=5), copies=st.sampled_from([1, 10, 100]))
def test_few_strings_and_many_have_the_same_hashes(texts: list[str], copies: int) -> None:
    expected = [slow_hash(text) for text in texts] * copies
    assert hash_strings(pa.array(texts * copies, pa.string())).tolist() == expected


def test_a_long_string_has_its_hash_among_short_ones() -> None:
    texts = ["a", "long " * 30_000, *(f"q{number}" for number in range(100)), "日本 " * 9_999]
    assert hash_strings(pa.array(texts)).tolist() == [slow_hash(text) for text in texts]


def test_mix_gives_the_published_sequence_of_splitmix64() -> None:
    # Seed 1234567 of the reference implementation (Vigna, prng.di.unimi.it/splitmix64.c).
    states = np.array([1234567 + step * GOLDEN_RATIO & MASK for step in range(1, 6)], np.uint64)
    assert mix(states).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 16294208416658607535),
        ("a", 6774081908283191102),
        ("q1", 5018589504199281542),
        ("12345678", 9501447833425779875),
        ("123456789", 9003943604911055402),
        ("日本語", 13833888312036465432),
        ("FBIS3-10082 " * 10, 4205929402525070268),
    ],
)
def test_a_hash_never_changes(text: str, expected: int) -> None:
    assert hash_string(text) == expected


@given(texts=st.lists(TEXTS))
def test_all_strings_at_once_hash_as_one_by_one(texts: list[str]) -> None:
    assert hash_strings(pa.array(texts, pa.string())).tolist() == [slow_hash(text) for text in texts]


@pytest.mark.parametrize("strings", [pa.string(), pa.large_string()], ids=str)
@given(texts=st.lists(TEXTS), data=st.data())
def test_a_slice_hashes_as_its_strings(strings: pa.DataType, texts: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(texts)))
    length = data.draw(st.integers(0, len(texts) - start))
    part = pa.array(texts, strings).slice(start, length)
    assert hash_strings(part).tolist() == [slow_hash(text) for text in texts[start : start + length]]


def test_trailing_zero_bytes_count() -> None:
    texts = ["", "\0", "\0\0", "a", "a\0", "a" * 8, "a" * 8 + "\0", "a" * 7 + "\0"]
    assert len(set(hash_strings(pa.array(texts)).tolist())) == len(texts)


def test_a_null_has_no_hash() -> None:
    with pytest.raises(ValueError, match="null"):
        hash_strings(pa.array(["a", None]))


@given(columns=st.lists(st.tuples(TEXTS, TEXTS, TEXTS)))
def test_rows_of_several_columns_hash_in_their_order(columns: list[tuple[str, str, str]]) -> None:
    hashed = [hash_strings(pa.array([row[place] for row in columns], pa.string())) for place in range(3)]
    expected = [reduce(absorb, map(slow_hash, row), 0) for row in columns]
    assert combine(*hashed).tolist() == expected


@given(texts=st.lists(st.sampled_from(["q1", "q2", "é", ""])), count=st.integers(1, 100))
def test_a_string_belongs_to_one_bucket(texts: list[str], count: int) -> None:
    numbers = buckets(pa.array(texts, pa.string()), count)
    assert numbers.tolist() == [slow_hash(text) % count for text in texts]


@pytest.mark.parametrize("count", [2, 7, 64, 1000])
@pytest.mark.parametrize("pattern", ["{}", "q{}", "{:08d}", "MED-{}", "a long prefix that all the ids share/{}"])
def test_consecutive_ids_spread_evenly_over_buckets(pattern: str, count: int) -> None:
    ids = pa.array([pattern.format(number) for number in range(20_000)])
    observed = np.bincount(buckets(ids, count), minlength=count)
    # A perfect hash fails one of the twenty cases with a chance of 20 · 2 · 10^-6: too even counts as uneven too.
    low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], count - 1)
    assert low < stats.chisquare(observed).statistic < high
