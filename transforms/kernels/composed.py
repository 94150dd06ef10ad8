"""Unicode's composed form (NFC), so that words match however files spell accents: macOS and PDFs decompose them."""

import unicodedata

import numpy as np

from rankbeam.transforms.kernels.arrays import IntArray

_JAMO = range(0x1160, 0x1200)  # vowels and final consonants of Hangul, which join the character before


def composed(text: str) -> str:
    r"""A text in composed form; the same object where it is that already.

    >>> composed("cafe\u0301") == "caf\u00e9"
    True
    """
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", text)


def before_composing(text: str, positions: IntArray) -> IntArray:
    r"""Positions in a text for positions in its composed form: where the characters begin that became one.

    >>> before_composing("e\u0301te\u0301s", np.array([0, 1, 2, 3])).tolist()
    [0, 2, 3, 5]
    """
    starts = [place for place, letter in enumerate(text) if place == 0 or not _joins(letter)]
    origins: list[int] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        whole = composed(part)
        origins += range(start, end) if whole is part else [start] * len(whole)
    return np.array(origins, np.int64)[positions]


def _joins(letter: str) -> bool:
    """Return whether a character may become one with those before it."""
    return unicodedata.category(letter).startswith("M") or ord(letter) in _JAMO
