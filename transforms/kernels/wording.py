"""Overlap of a question's wording with its source text, and the difficulty of finding its document."""

import re
import unicodedata
from collections.abc import Sequence

MOST_COMMON_WORDS = 6
"""The longest run of words that a question may share with its text; a longer one gives the text away."""
EASY, MEDIUM, HARD, UNREACHABLE = "easy", "medium", "hard", "unreachable"
DIFFICULTIES = (EASY, MEDIUM, HARD, UNREACHABLE)

_WORD = re.compile(r"\w+")
_HIGHEST_RANKS = ((3, EASY), (10, MEDIUM), (100, HARD))


def words(text: str) -> list[str]:
    """The words of a text.

    >>> words("Don't pay twice.")
    ['don', 't', 'pay', 'twice']
    """
    return _WORD.findall(unicodedata.normalize("NFC", text).casefold())


def longest_common_run(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest run of consecutive words that both contain.

    >>> longest_common_run("who may pay an invoice".split(), "owners may pay an extra".split())
    3
    """
    longest, before = 0, [0] * (len(second) + 1)
    for word in first:
        row = [0] * (len(second) + 1)
        for place, other in enumerate(second, start=1):
            if word == other:
                row[place] = before[place - 1] + 1
        longest, before = max(longest, *row), row
    return longest


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
