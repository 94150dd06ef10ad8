r"""The words of texts, many texts at a time.

A word is a maximal run of two or more letters, digits or underscores of the text, composed and in lower case: what the
pattern `\b\w\w+\b` finds, as in scikit-learn and bm25s. Finding the runs in arrays of code points takes a fifth of the
time. Texts are composed (NFC), so that words match however files spell accents: macOS and PDFs decompose them.

In scripts without blanks between words (Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese), terms are overlapping
pairs of characters, as Lucene's CJKAnalyzer makes them of the first three (Nie, Gao, Zhang and Zhou, "On the use of
words and n-grams for Chinese information retrieval", IRAL 2000); a character alone stays one.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np

from rankbeam.transforms.kernels.arrays import BoolArray, ByteArray, IntArray
from rankbeam.transforms.kernels.text import substrings

_JAMO = range(0x1160, 0x1200)  # vowels and final consonants of Hangul, which join the character before
UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9F), (0x20000, 0x3FFFF),
)  # fmt: skip
"""Code points of scripts without blanks: Thai and Lao; Burmese; Khmer; kana; ideographs; halfwidth kana; ideographs."""
_HANGUL = ((0x1100, 0x11FF), (0xA960, 0xA97F), (0xAC00, 0xD7FF))  # has blanks, but terms are pairs here, too
PATTERN = re.compile(r"(?u)\b\w\w+\b")
_ASCII, _BASIC, _CODE_POINTS = 0x80, 0x10000, 0x110000


def to_nfc(text: str) -> str:
    r"""A text in composed form; the same object if it is composed already.

    >>> to_nfc("cafe\u0301") == "caf\u00e9"
    True
    """
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", text)


def before_composing(text: str, positions: IntArray) -> IntArray:
    r"""Map positions in a text's composed form to the text: to the first of the characters that became one.

    >>> before_composing("e\u0301te\u0301s", np.array([0, 1, 2, 3])).tolist()
    [0, 2, 3, 5]
    """
    starts = [place for place, letter in enumerate(text) if place == 0 or not _joins(letter)]
    origins: list[int] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        whole = to_nfc(part)
        origins += range(start, end) if whole is part else [start] * len(whole)
    return np.array(origins, np.int64)[positions]


def _joins(letter: str) -> bool:
    """Return whether a character may become one with those before it."""
    return unicodedata.category(letter).startswith("M") or ord(letter) in _JAMO


def pairs_and_words(text: str) -> Iterator[tuple[str, int]]:
    """The terms of a text in lower case, and the position at which each begins.

    >>> list(pairs_and_words("東京都 ok c"))
    [('東京', 0), ('京都', 1), ('ok', 4)]
    >>> [term for term, _ in pairs_and_words("中")]
    ['中']
    """
    for match in _pattern().finditer(text):
        run, start = match[0], match.start()
        if match.lastgroup == "word" or len(run) == 1:
            yield run, start
        else:
            for place in range(len(run) - 1):
                yield run[place : place + 2], start + place


def has_pairs(text: str) -> bool:
    """Return whether a text has a character of these scripts."""
    return not text.isascii() and _unspaced_letter().search(text) is not None


@cache
def _unspaced_letter() -> re.Pattern[str]:
    return re.compile(f"[{_letters_of()}]")


@cache
def _pattern() -> re.Pattern[str]:
    letters = _letters_of()
    return re.compile(rf"(?P<run>[{letters}]+)|(?P<word>(?:(?![{letters}])\w){{2,}})")


@cache
def _letters_of() -> str:
    """The letters and marks of these scripts, for a class of a pattern: their punctuation is left out."""
    characters = (chr(point) for first, last in sorted(UNSPACED + _HANGUL) for point in range(first, last + 1))
    letters = [letter for letter in characters if letter.isalnum() or unicodedata.category(letter).startswith("M")]
    runs: list[list[str]] = []
    for letter in letters:
        if runs and ord(letter) == ord(runs[-1][1]) + 1:
            runs[-1][1] = letter
        else:
            runs.append([letter, letter])
    return "".join(f"{first}-{last}" for first, last in runs)


@dataclass(frozen=True)
class Words:
    """The words of some texts, in order."""

    vocabulary: list[str]  # every word once
    word: IntArray  # int64[n], of each occurrence, its position in the vocabulary
    text: IntArray  # int64[n], the text that contains it
    start: IntArray  # int64[n], where it begins there, in code points of the text as given


def words_of(texts: Sequence[str]) -> Words:
    """The words of texts.

    >>> words = words_of(["One, two", "x TWO"])
    >>> words.vocabulary, words.word.tolist(), words.text.tolist(), words.start.tolist()
    (['one', 'two'], [0, 1, 1], [0, 0, 1], [0, 5, 2])
    """
    lowered = [fold_case(text) for text in texts]
    joined = "\n".join([*lowered, ""])
    is_inside, data, byte_of = _characters(joined)
    edge = np.diff(is_inside.view(np.int8), prepend=np.int8(0))
    start, end = np.flatnonzero(edge == 1), np.flatnonzero(edge == -1)
    is_long = end - start > 1
    start, end = start[is_long], end[is_long]
    ends = np.fromiter(accumulate(len(text) + 1 for text in lowered), np.int64, len(lowered))
    text_number = np.searchsorted(ends, start, side="right")
    inside = start - np.concatenate([[0], ends])[text_number]
    for number in (number for number, text in enumerate(texts) if _is_moved(text, lowered[number])):
        first, last = np.searchsorted(text_number, [number, number + 1])
        inside[first:last] = _in_original(texts[number], inside[first:last])
    encoded = substrings(data, byte_of[start], byte_of[end]).dictionary_encode()
    return Words(encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64), text_number, inside)


def pairs_of(texts: Sequence[str]) -> Words:
    """The words of texts; of scripts without blanks between words, pairs of characters instead.

    >>> words = pairs_of(["東京都", "x OK"])
    >>> words.vocabulary, words.word.tolist(), words.text.tolist(), words.start.tolist()
    (['東京', '京都', 'ok'], [0, 1, 2], [0, 0, 1], [0, 1, 2])
    """
    numbers: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    for place, text in enumerate(texts):
        lowered = fold_case(text)
        terms = [(numbers.setdefault(term, len(numbers)), place, start) for term, start in pairs_and_words(lowered)]
        if terms and _is_moved(text, lowered):
            starts = _in_original(text, np.array([start for _, _, start in terms]))
            terms = [(term, at, int(start)) for (term, at, _), start in zip(terms, starts, strict=True)]
        rows += terms
    word, text_number, start = np.array(rows, np.int64).reshape(-1, 3).T
    return Words(list(numbers), word, text_number, start)


def _characters(text: str) -> tuple[BoolArray, ByteArray, IntArray]:
    """Return three arrays: whether each character belongs to a word, the text's bytes, each character's first byte."""
    if text.isascii():
        data = np.frombuffer(text.encode(), np.uint8)
        return _is_word(_ASCII)[data], data, np.arange(len(data) + 1)
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    width = 1 + (points > 0x7F).astype(np.int64) + (points > 0x7FF) + (points > 0xFFFF)
    table = _is_word(_BASIC if points.max() < _BASIC else _CODE_POINTS)
    return table[points], np.frombuffer(text.encode(), np.uint8), np.concatenate([[0], np.cumsum(width)])


@cache
def _is_word(points: int) -> BoolArray:
    r"""Return whether `\w` matches each of the first code points; for all of them that takes a tenth of a second."""
    table = np.fromiter((chr(point).isalnum() for point in range(points)), bool, points)
    table[ord("_")] = True
    return table


def fold_case(text: str) -> str:
    """A text as its words are compared: composed, in lower case."""
    return to_nfc(text).lower()


def _is_moved(text: str, lowered: str) -> bool:
    return len(text) != len(lowered) or to_nfc(text) is not text


def _in_original(text: str, positions: IntArray) -> IntArray:
    """Map positions in a text's folded form to the text.

    The folded form is shorter if characters are composed, and longer if a capital becomes two characters.
    """
    letters = to_nfc(text)
    ends = np.fromiter(accumulate(len(character.lower()) for character in letters), np.int64, len(letters))
    inside = np.searchsorted(ends, positions, side="right")
    return inside if letters is text else before_composing(text, inside)
