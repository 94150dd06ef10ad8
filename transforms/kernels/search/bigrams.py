"""The terms of texts in scripts without blanks between words: pairs of neighbouring characters.

Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese characters become overlapping pairs, as Lucene's CJKAnalyzer
makes them of the first three (Nie, Gao, Zhang and Zhou, "On the use of words and n-grams for Chinese information
retrieval", IRAL 2000); a character alone stays one. What is between them is words, as `words_of` finds them.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

_RANGES = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3040, 0x30FF),
    (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA960, 0xA97F), (0xAC00, 0xD7FF), (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F), (0x20000, 0x3FFFF),
)  # fmt: skip
"""Thai and Lao; Burmese; Hangul; Khmer; kana; ideographs; halfwidth kana; further ideographs."""


def pairs_and_words(text: str) -> Iterator[tuple[str, int]]:
    """The terms of a text in lower case, and where each begins.

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
    return not text.isascii() and _undivided().search(text) is not None


@cache
def _undivided() -> re.Pattern[str]:
    return re.compile(f"[{_characters()}]")


@cache
def _pattern() -> re.Pattern[str]:
    own = _characters()
    return re.compile(rf"(?P<run>[{own}]+)|(?P<word>(?:(?![{own}])\w){{2,}})")


@cache
def _characters() -> str:
    """The letters and marks of these scripts, for a class of a pattern: their punctuation is left out."""
    characters = (chr(point) for first, last in _RANGES for point in range(first, last + 1))
    letters = [letter for letter in characters if letter.isalnum() or unicodedata.category(letter).startswith("M")]
    runs: list[list[str]] = []
    for letter in letters:
        if runs and ord(letter) == ord(runs[-1][1]) + 1:
            runs[-1][1] = letter
        else:
            runs.append([letter, letter])
    return "".join(f"{first}-{last}" for first, last in runs)
