"""Locate a quote in its text, whatever typography a model changed: quotation marks, dashes, markup, case, blanks."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_LEFT_OUT = re.compile(
    r"\[\d+(?:\s*[,;–-]\s*\d+)*\]"  # citations
    r"|^[^\S\n]*(?:[-*+•]|\d+[.)])[^\S\n]+"  # marks of a list
    r"|[*_#~`´'\"’‘‚‛′“”„‟″«»‹›]+",  # emphasis and quotation marks
    re.MULTILINE,
)
_DASHES = "‐‑‒–—―−"
_WORD = re.compile(r"\S+")
_NO_WORD_BEFORE, _NO_WORD_AFTER = r"(?<![^\W_])", r"(?![^\W_])"
_EDGES = " .,;:!?-()[]{}<>"

Span = tuple[int, int]  # start and end in code points of the text


def span_of(quote: str, text: str) -> Span | None:
    """Return the span of a quote in a text: word by word if possible, else with both folded; None without a match.

    >>> span_of("pay an  invoice", "Owners pay an\\ninvoice."), span_of("don't PAY", "We **don’t** pay [1].")
    ((7, 21), (5, 16))
    """
    if (exact := exact_place(quote, text)) is not None or not quote.split():
        return exact
    folded, places = _fold_typography(text)
    needle, _ = _fold_typography(quote)
    for part in dict.fromkeys((needle, needle.strip(_EDGES))):
        position = _first_match(part, folded) if part else None
        if position is not None:
            return places[position][0], places[position + len(part) - 1][1]
    return None


def exact_place(quote: str, text: str) -> Span | None:
    """The first span of a quote in a text, whatever white space is between its words; None if the text lacks it.

    >>> exact_place("pay an  invoice", "Owners pay an\\ninvoice."), exact_place(" ", "a b")
    ((7, 21), None)
    """
    words = quote.split()
    if not words:
        return None
    plain, even = " ".join(words), " ".join(text.split())
    start = even.find(plain)
    if start < 0 or even == text:
        return None if start < 0 else (start, start + len(plain))
    starts = [word.start() for word in _WORD.finditer(text)]
    first, last = (
        starts[even.count(" ", 0, place)] + place - even.rfind(" ", 0, place) - 1
        for place in (start, start + len(plain) - 1)
    )
    return first, last + 1


def _first_match(part: str, folded: str) -> int | None:
    """The first match that begins and ends with whole words, or else the first match."""
    first = folded.find(part)
    if first < 0:
        return None
    before = _NO_WORD_BEFORE if part[0].isalnum() else ""
    after = _NO_WORD_AFTER if part[-1].isalnum() else ""
    match = re.compile(f"{before}{re.escape(part)}{after}").search(folded, first)
    return first if match is None else match.start()


@lru_cache(maxsize=16)  # the claims of one text are located one after the other
def _fold_typography(text: str) -> tuple[str, list[Span]]:
    """A text without its typography, and the span of the text that each character comes from."""
    characters: list[str] = []
    places: list[Span] = []
    is_spaced = False
    for start, end in _clusters(text):
        for character in _plain(text[start:end]):
            if character.isspace():
                is_spaced = True
                continue
            if character == "-" and characters[-1:] == ["-"]:
                continue
            # Blanks count between words alone: characters that were left out may have had some around them.
            if is_spaced and characters and characters[-1].isalnum() and character.isalnum():
                characters.append(" ")
                places.append((start, start))
            characters.append(character)
            places.append((start, end))
            is_spaced = False
    return "".join(characters), places


def _clusters(text: str) -> Iterator[Span]:
    """The span of each character with the combining ones after it, except the characters that are left out."""
    left_out = [match.span() for match in _LEFT_OUT.finditer(text)]
    last = 0
    for start, end in [*left_out, (len(text), len(text))]:
        position = last
        while position < start:
            after = position + 1
            while after < start and unicodedata.combining(text[after]):
                after += 1
            yield position, after
            position = after
        last = end


def _plain(cluster: str) -> str:
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", cluster).casefold())
    return "".join("-" if point in _DASHES else point for point in decomposed if unicodedata.category(point) != "Cf")
