"""A quote is placed in its text whatever typography a model changed, and nowhere where its words are not there."""

import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.quoting import exact_place, span_of

TEXT = "Don’t pay the “café” – it’s  closed**, says** Bob [2]; the naïve\nMüller pays €20 — or more… – each day."
WORDS = [
    "Don't",
    "pay",
    '"the',
    'café"',
    "-",
    "it's",
    "shut,",
    "naïve",
    "Müller",
    "ﬁne",
    "x–y",
    "Straße",
    "日本",
    "3.5",
]

CHANGES: list[Callable[[str], str]] = [
    lambda word: word.replace("'", "’").replace('"', "“"),
    lambda word: word.replace("'", "`").replace('"', "«"),
    lambda word: word.replace("-", "—").replace("–", "-"),
    lambda word: unicodedata.normalize("NFD", word),
    lambda word: unicodedata.normalize("NFKC", word),
    lambda word: word.upper(),
    lambda word: f"**{word}**",
    lambda word: f"_{word}_ [1, 2]",
    lambda word: word.replace("a", "a\u00ad"),
    lambda word: f"{word}\u00a0",
]


@pytest.mark.parametrize(
    ("quote", "expected"),
    [
        ('Don\'t pay the "café"', "Don’t pay the “café"),
        ("don't pay", "Don’t pay"),
        ("the cafe\u0301 - it's closed, says", "the “café” – it’s  closed**, says"),
        ("closed, says Bob; the naive", None),
        ("closed, says Bob; the naïve Müller", "closed**, says** Bob [2]; the naïve\nMüller"),
        ("Bob.", "Bob"),
        ("pays €20 - or more... - each day", "pays €20 — or more… – each day"),
        ("Bob pays", None),
        ("", None),
        ("“”", None),
    ],
)
def test_one_difference_of_typography_keeps_the_place(quote: str, expected: str | None) -> None:
    place = span_of(quote, TEXT)
    assert (None if place is None else TEXT[slice(*place)].strip("*“”")) == expected


def test_a_quote_that_is_there_word_by_word_stays_where_it_was() -> None:
    assert span_of("B", "a b B") == (4, 5)
    assert span_of("art", "Party art’s") == (1, 4)
    assert span_of("ART", "Party art is") == (6, 9)  # folded: whole words first


@given(
    words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=9, unique=True),
    ends=st.tuples(st.integers(0, 8), st.integers(0, 8)),
    ours=st.lists(st.sampled_from(CHANGES), min_size=9, max_size=9),
    theirs=st.lists(st.sampled_from(CHANGES), min_size=9, max_size=9),
)
def test_a_place_is_that_of_the_words_however_both_are_written(
    words: list[str], ends: tuple[int, int], ours: list[Callable[[str], str]], theirs: list[Callable[[str], str]]
) -> None:
    first, last = sorted(min(end, len(words) - 1) for end in ends)
    text, spans = "", []
    for word, change in zip(words, ours, strict=False):
        written = change(word)
        spans.append((len(text), len(text) + len(written)))
        text += f"{written} "
    quote = " ".join(change(word) for word, change in list(zip(words, theirs, strict=False))[first : last + 1])
    place = span_of(quote, text)
    if not any(character.isalnum() for character in quote):
        return  # a dash alone
    assert place is not None
    letters = lambda part: [one for one in unicodedata.normalize("NFKD", part).casefold() if one.isalpha()]  # noqa: E731
    assert letters(text[slice(*place)]) == letters("".join(words[first : last + 1]))
    assert spans[first][0] <= place[0]
    assert place[1] <= spans[last][1]


@given(st.text("ab \n\u00a0", max_size=6), st.text("ab \n\u00a0", max_size=16))
def test_words_stand_where_a_pattern_first_matches(quote: str, text: str) -> None:
    match = re.search(r"\s+".join(map(re.escape, quote.split())), text) if quote.split() else None
    if match is not None:
        assert span_of(quote, text) == match.span()


def test_a_long_quote_of_one_word_is_looked_for_once() -> None:  # at each of its places, it would take hours
    text = "a\n" * 1_000_000
    assert exact_place(f"{'a ' * 100_000}c", text) is None
    assert exact_place("a " * 100_000, text) == (0, 199_999)
