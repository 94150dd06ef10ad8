"""Names in messages: suggest the valid name nearest to a misspelt one, and shorten long ones."""

import difflib
from collections.abc import Iterable, Mapping

_MOST_NAMES = 60


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """The end of a message "unknown …": the nearest valid name, or all of them where none is near.

    >>> did_you_mean("retriver", ["retriever", "name"])
    "did you mean 'retriever'?"
    >>> did_you_mean("zzz", ["retriever", "name"])
    'valid are: name, retriever'
    """
    by_lower = _one_spelling(valid)
    if nearest := _nearest(word, by_lower):
        return f"did you mean {nearest!r}?"
    names = sorted(by_lower.values())
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"valid are: {', '.join(names[:_MOST_NAMES])}{more}"


def did_you_mean_among(word: str, families: Mapping[str, Iterable[str]]) -> str:
    """As `did_you_mean`, for too many names for one list: where none is near, a line for each family.

    >>> print(did_you_mean_among("zzz", {"ranked": ["RR", "AP"], "counted": ["NumRel"]}))
    valid are:
      ranked: AP, RR
      counted: NumRel
    """
    of: dict[str, str] = {}
    for family, names in families.items():
        of |= {name: family for name in names if name not in of}
    by_lower = _one_spelling(of)
    if nearest := _nearest(word, by_lower):
        return f"did you mean {nearest!r}?"
    lines = dict[str, list[str]]()
    for name in by_lower.values():
        lines.setdefault(of[name], []).append(name)
    return "\n  ".join(["valid are:", *(f"{family}: {', '.join(sorted(names))}" for family, names in lines.items())])


def _one_spelling(names: Iterable[str]) -> dict[str, str]:
    """The first of all spellings of each name, by the name in lower case."""
    by_lower: dict[str, str] = {}
    for name in names:
        by_lower.setdefault(name.lower(), name)
    return by_lower


def _nearest(word: str, by_lower: Mapping[str, str]) -> str | None:
    near = difflib.get_close_matches(word.lower(), by_lower, n=max(1, len(by_lower)))
    # Swapped letters are the most common mistake, and difflib does not rank them first.
    near.sort(key=lambda name: sorted(name) != sorted(word.lower()))
    return by_lower[near[0]] if near else None


def shortened(text: str, most: int = 60) -> str:
    """A text of at most so many characters; a longer one is cut, and ends in "…".

    >>> shortened("abc"), shortened("abcdef", most=4)
    ('abc', 'abc…')
    """
    return text if len(text) <= most else text[: most - 1] + "…"
