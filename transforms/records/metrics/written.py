"""The syntax of a metric's name: `Name`, options in brackets, a cutoff after `@`."""

import re
from dataclasses import dataclass

from rankbeam.transforms.records.errors import InputError

_MOST = 999_999_999
_LEVELS = {"iprec": "recall"}
"""Metrics that have a level after `@`, as in ir_measures' `IPrec@0.1`: the option that it sets."""
_FORM = "write it as nDCG@10, AP or P(rel=2)@5"
_NAME = re.compile(
    r"^\s*(?P<name>[A-Za-z_0-9][A-Za-z_0-9-]*)\s*(?:\((?P<options>.*)\))?\s*(?:@\s*(?P<cutoff>[^\s,]+))?\s*$"
)
_SEPARATOR = re.compile(r"[,\s]+(?![^(]*\))")
"""Commas and blanks outside brackets."""


@dataclass(frozen=True)
class Written:
    """A name in its parts."""

    name: str
    options: tuple[tuple[str, str | None], ...]
    cutoff: int | None
    in_tokens: bool = False  # the cutoff is a number of tokens, as in `SpanRecall@2000t`


def split_name(text: str) -> Written:
    """Split a metric's name into its parts.

    >>> split_name("nDCG( gain = exp )@10")
    Written(name='nDCG', options=(('gain', 'exp'),), cutoff=10, in_tokens=False)
    >>> split_name("Faithfulness(ragas,judge=lexical)").options
    (('ragas', None), ('judge', 'lexical'))
    """
    match = _NAME.match(text)
    if match is None:
        raise InputError(f"{text!r} is not a metric; {_advice(text)}")
    options: dict[str, str | None] = {}
    for item in filter(None, (part.strip() for part in (match["options"] or "").split(","))):
        option, equals, value = (part.strip() for part in item.partition("="))
        if option in options:
            raise InputError(f"metric {text!r}: the option {option!r} is given twice; keep one")
        options[option] = value if equals else None
    cutoff = match["cutoff"]
    if cutoff is not None and (level := _LEVELS.get(match["name"].lower())):
        if level in options:
            raise InputError(f"metric {text!r}: the option {level!r} is given twice; keep one")
        options[level], cutoff = cutoff, None
    in_tokens = cutoff is not None and cutoff.endswith("t")
    return Written(
        match["name"], tuple(options.items()), _cutoff(text, cutoff[:-1] if in_tokens else cutoff), in_tokens
    )


def _advice(text: str) -> str:
    parts = [part for part in _SEPARATOR.split(text) if part]
    for place, part in enumerate(parts[1:], start=1):
        if part.isdecimal():  # "nDCG@5,10"
            parts[place] = f"{parts[place - 1].partition('@')[0]}@{part}"
    if len(parts) < 2 or not all(_NAME.match(part) and ("," in text or not part.islower()) for part in parts):
        return _FORM
    *first, last = parts
    return f"write each metric on its own: {', '.join(first)} and {last} (-m {' -m '.join(parts)})"


def _cutoff(text: str, written: str | None) -> int | None:
    if written is None:
        return None
    if not written.isdecimal() or len(written) > len(str(_MOST)) or int(written) < 1:
        raise InputError(f"metric {text!r}: the cutoff {written!r} is not a positive whole number up to {_MOST:,}")
    return int(written)
