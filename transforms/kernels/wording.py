"""Overlap of a question's wording with its source text, and the difficulty of finding its document."""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache

from rankbeam.transforms.kernels.search.words import UNSPACED

MOST_COMMON_WORDS = 6
"""The longest run of words that a question may share with its text; a longer one gives the text away."""
EASY, MEDIUM, HARD, UNREACHABLE = "easy", "medium", "hard", "unreachable"
DIFFICULTIES = (EASY, MEDIUM, HARD, UNREACHABLE)

_WORD = re.compile(r"\w+")
_UNSPACED = "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSPACED)
_CHARACTER = re.compile(f"[{_UNSPACED}]")
_LAST_MARK = 0xFFFF  # living languages hardly use the scripts beyond it
_HIGHEST_RANKS = ((3, EASY), (10, MEDIUM), (100, HARD))


def words(text: str) -> list[str]:
    """The words of a text; of scripts without blanks between words, the characters.

    >>> words("Don't pay twice."), words("东京 OK")
    (['don', 't', 'pay', 'twice'], ['东', '京', 'ok'])
    """
    folded = unicodedata.normalize("NFC", text).casefold()
    if folded.isascii():
        return _WORD.findall(folded)
    special, pattern = _patterns()
    return (_WORD if special.search(folded) is None else pattern).findall(folded)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of a mark or a character of these scripts, and of a word of a text that has some."""
    marks = "".join(chr(point) for point in range(_LAST_MARK) if unicodedata.category(chr(point)).startswith("M"))
    word = rf"(?=\w)[{_UNSPACED}][{marks}]*|(?:(?![{_UNSPACED}])\w)(?:(?![{_UNSPACED}])[\w{marks}])*"
    return re.compile(f"[{_UNSPACED}{marks}]"), re.compile(word)


def length(words: Iterable[str]) -> float:
    """The number of words, of which two characters of scripts without blanks are about one.

    >>> length(words("东京 OK"))
    2.0
    """
    return sum(0.5 if not word.isascii() and _CHARACTER.match(word) else 1.0 for word in words)


def longest_common_run(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest run of consecutive words that both contain, rounded up.

    >>> longest_common_run("who may pay an invoice".split(), "owners may pay an extra".split())
    3
    """
    longest, before = 0.0, [0.0] * (len(second) + 1)
    for word in first:
        row, weight = [0.0] * (len(second) + 1), length([word])
        for place, other in enumerate(second, start=1):
            if word == other:
                row[place] = before[place - 1] + weight
        longest, before = max(longest, *row), row
    return math.ceil(longest)


def difficulty(rank: int | None) -> str:
    """The difficulty of finding a document, by its rank in bm25's results.

    Args:
        rank: from 1; None if it is not among the results.

    >>> [difficulty(rank) for rank in (1, 10, 11, None)]
    ['easy', 'medium', 'hard', 'unreachable']
    """
    if rank is None:
        return UNREACHABLE
    return next((name for highest, name in _HIGHEST_RANKS if rank <= highest), UNREACHABLE)
