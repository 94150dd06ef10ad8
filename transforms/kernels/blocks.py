"""Parts of a text that chunks keep whole: tables and code in Markdown, and graphemes, the characters people see."""

import functools
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

Span = tuple[int, int]

LINE = re.compile(r"[^\n]*\n?")
FENCE = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_BELOW_HEAD = re.compile(r"\s*+\|?\s*+:?-++:?\s*+(\|\s*+:?-++:?\s*+)*+\|?\s*+$")
_JOINING = re.compile(
    "[\u200c\u200d\uff9e\uff9f\u0e33\u0eb3\u1100-\u11ff\ua960-\ua97c\ud7b0-\ud7fb\U0001f1e6-\U0001f1ff"
    "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd]"
)
"""Characters other than marks that `is_inside` joins to a neighbour."""
_VIRAMA = 9  # combining class of marks that join the consonants around them
_PREPENDED = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd")


def kept_whole(text: str, units: Sequence[Span], fits: Callable[[int, int], bool]) -> list[Span]:
    """Join the units of each grapheme, table or block of code that fits into a chunk.

    Args:
        text: any text.
        units: spans, in order and without overlaps.
        fits: returns whether a chunk may hold a span; if a block does not fit, the units of each line are joined.

    >>> text = "See a b: e\\u0301\\n```\\nx = 1\\ny = 2\\n```"
    >>> kept_whole(text, [(0, 3), (4, 5), (9, 10), (10, 11), (12, 15), (16, 21), (22, 27), (28, 31)], lambda *_: True)
    [(0, 3), (4, 5), (9, 11), (12, 31)]
    """
    units = whole_graphemes(text, units)
    starts, ends = [start for start, _ in units], [end for _, end in units]
    joined: list[Span] = []
    done = 0
    for start, end in _pieces(text, fits):
        first, last = max(done, bisect_right(ends, start)), bisect_left(starts, end)
        if last - first > 1 and fits(starts[first], ends[last - 1]):
            joined += [*units[done:first], (starts[first], ends[last - 1])]
            done = last
    return [*joined, *units[done:]]


def closes(line: str, fence: str) -> bool:
    """Return whether a line ends the code that a fence opened: with as many of its characters, and nothing else.

    >>> closes("````\\n", "```"), closes("~~~", "```"), closes("```python", "```")
    (True, False, False)
    """
    marker = line.strip()
    return len(marker) >= len(fence) and not marker.strip(fence[0])


def blocks(text: str) -> Iterator[list[Span]]:
    """The lines of each table and of each fenced block of code in Markdown.

    >>> list(blocks("a | b\\n--|--\\nc | d\\n\\ne"))
    [[(0, 6), (6, 12), (12, 18)]]
    """
    if "|" not in text and "```" not in text and "~~~" not in text:
        return
    lines = [match.span() for match in LINE.finditer(text) if match[0]]
    number = 0
    while number < len(lines):
        end = _end_of_block(text, lines, number)
        if end > number:
            yield lines[number:end]
        number = max(end, number + 1)


def _end_of_block(text: str, lines: Sequence[Span], number: int) -> int:
    """Number of the line after the block that a line opens; the line itself if it opens none."""
    rest = range(number + 1, len(lines))
    line = text[slice(*lines[number])]
    if opened := FENCE.match(line):
        return next((end + 1 for end in rest if closes(text[slice(*lines[end])], opened[1])), len(lines))
    below = text[slice(*lines[number + 1])] if rest else ""
    if "|" in line and "|" in below and _BELOW_HEAD.match(below):
        return next((end for end in rest if "|" not in text[slice(*lines[end])]), len(lines))
    return number


def _pieces(text: str, fits: Callable[[int, int], bool]) -> Iterator[Span]:
    for lines in blocks(text):
        whole = lines[0][0], lines[-1][1] - (text[lines[-1][1] - 1] == "\n")
        yield from [whole] if fits(*whole) else lines


def whole_graphemes(text: str, units: Sequence[Span]) -> list[Span]:
    """Join neighbouring units if the boundary between them is inside a grapheme.

    >>> whole_graphemes("e\u0301a", [(0, 1), (1, 2), (2, 3)])
    [(0, 2), (2, 3)]
    """
    if text.isascii() or not any(map(_may_join, set(text))):
        return list(units)
    joined: list[Span] = []
    for start, end in units:
        if joined and joined[-1][1] == start and is_inside(text, start):
            start = joined.pop()[0]
        joined.append((start, end))
    return joined


@functools.lru_cache(maxsize=1 << 16)
def _may_join(character: str) -> bool:
    return unicodedata.category(character)[0] == "M" or _JOINING.match(character) is not None


def is_inside(text: str, at: int) -> bool:
    """Return whether a position is inside a grapheme by the rules of UAX #29, or inside what people take for one.

    >>> [is_inside(text, 1) for text in ("e\\u0301", "ab", "\\U0001f1e9\\U0001f1ea", "\\u1100\\u1161")]
    [True, False, True, True]
    """
    before, after = text[at - 1], text[at]
    if before.isascii() and after.isascii():
        return before == "\r" and after == "\n"
    if unicodedata.category(after) in ("Mn", "Me", "Mc") or "\U0001f3fb" <= after <= "\U0001f3ff":
        return True
    if after in "\u200c\u200d\uff9e\uff9f\u0e33\u0eb3" or "\U000e0020" <= after <= "\U000e007f":
        return True
    if before == "\u200d" or before in _PREPENDED or unicodedata.combining(before) == _VIRAMA:
        return True
    if _is_flag_letter(before) and _is_flag_letter(after):
        first = at - 1
        while first and _is_flag_letter(text[first - 1]):
            first -= 1
        return (at - first) % 2 == 1
    return _joins_hangul(before, after)


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _joins_hangul(before: str, after: str) -> bool:
    """Return whether two Korean letters belong to one syllable."""
    is_lead = "\u1100" <= before <= "\u115f" or "\ua960" <= before <= "\ua97c"
    is_letter = "\u1100" <= after <= "\u11ff" or "\ua960" <= after <= "\ua97c"
    follows = "\u1160" <= after <= "\u11ff" or "\ud7b0" <= after <= "\ud7fb"
    is_syllable = "\uac00" <= before <= "\ud7a3" or "\u1160" <= before <= "\u11ff" or "\ud7b0" <= before <= "\ud7fb"
    return (is_lead and (is_letter or "\uac00" <= after <= "\ud7a3")) or ((is_lead or is_syllable) and follows)
