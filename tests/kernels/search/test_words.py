"""Words of texts, against the pattern that defines them."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from rankbeam.transforms.kernels.search.words import words_of

LETTERS = st.sampled_from("ab_9 .,\nAÉßİΣǅ日😀'\u0307\u0301e\u1100\u1161-")
TEXTS = st.lists(st.one_of(st.text(), st.text(LETTERS)), max_size=6)


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def before_composing(text: str, position: int) -> int:
    """The last place to cut the text, so that it composes as before, with at most so many characters before it."""
    for place in range(len(text), -1, -1):
        first, second = nfc(text[:place]), nfc(text[place:])
        if len(first) <= position and first + second == nfc(text):
            return place
    raise AssertionError(position)


@given(TEXTS)
def test_words_are_what_the_pattern_finds(texts: list[str]) -> None:
    words = words_of(texts)
    terms = [words.vocabulary[number] for number in words.word.tolist()]

    expected = [
        (number, word) for number, text in enumerate(texts) for word in re.findall(r"\b\w\w+\b", nfc(text).lower())
    ]
    assert list(zip(words.text.tolist(), terms, strict=True)) == expected
    assert len(set(words.vocabulary)) == len(words.vocabulary)


@given(TEXTS)
def test_a_word_begins_where_it_stands_in_the_text_as_given(texts: list[str]) -> None:
    words = words_of(texts)

    expected = []
    for text in texts:
        origin = [place for place, character in enumerate(nfc(text)) for _ in character.lower()]
        matches = re.finditer(r"\b\w\w+\b", nfc(text).lower())
        expected += [before_composing(text, origin[match.start()]) for match in matches]
    assert words.start.tolist() == expected
