"""Names in messages: suggest the valid name nearest to a misspelt one, and shorten long ones."""

import difflib
from collections.abc import Iterable

_MOST_NAMES = 60


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """The end of a message "unknown …": the nearest valid name, or all of them where none is near.

    >>> did_you_mean("retriver", ["retriever", "name"])
    "did you mean 'retriever'?"
    >>> did_you_mean("zzz", ["retriever", "name"])
    'valid are: name, retriever'
    """
    by_lower: dict[str, str] = {}
    for name in valid:
        by_lower.setdefault(name.lower(), name)  # of two spellings, suggest the first
    near = difflib.get_close_matches(word.lower(), by_lower, n=max(1, len(by_lower)))
    # Swapped letters are the most common mistake, and difflib does not rank them first.
    near.sort(key=lambda name: sorted(name) != sorted(word.lower()))
    if near:
        return f"did you mean {by_lower[near[0]]!r}?"
    names = sorted(by_lower.values())
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"valid are: {', '.join(names[:_MOST_NAMES])}{more}"


def shortened(text: str, most: int = 60) -> str:
    """A text of at most so many characters; a longer one is cut, and ends in "…".

    >>> shortened("abc"), shortened("abcdef", most=4)
    ('abc', 'abc…')
    """
    return text if len(text) <= most else text[: most - 1] + "…"
