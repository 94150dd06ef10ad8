"""The rules for ids in every format; ids and texts made of numbers, bytes, dates and JSON values."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.kernels.text import BLANKS, LONGEST_ID, edge_blanks
from rankbeam.transforms.records.errors import InputError, shortened

_BLANKS = "begins or ends with white space, so it matches no id without it; remove it"
LEAST_INEXACT = 2**53
INEXACT = "is a floating-point number above 2^53, where different ids become equal; write it as a text"
_LONG = f"is longer than {LONGEST_ID:,} bytes"


def faults(ids: pa.StringArray) -> Iterator[tuple[BoolArray, str]]:
    """For each possible fault of an id, the ids with that fault, and its description."""
    sizes = pc.binary_length(ids).to_numpy()
    yield sizes == 0, "is empty"
    yield sizes > LONGEST_ID, _LONG
    yield edge_blanks(ids), _BLANKS


def fault(name: str) -> str | None:
    """The fault of one id; None for a valid id."""
    if not name:
        return "is empty"
    if name[0] in BLANKS or name[-1] in BLANKS:
        return _BLANKS
    return _LONG if len(name) * 4 > LONGEST_ID and len(name.encode(errors="replace")) > LONGEST_ID else None


def json_id(path: str, line: int, value: Any) -> str:
    if isinstance(value, str):
        return checked_id(path, line, value)
    if isinstance(value, bool | list | dict) or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"the id is {shortened(as_text(value))}; an id is a text or a number", path=path, line=line)
    if isinstance(value, float) and abs(value) >= LEAST_INEXACT:
        raise InputError(f"the id {INEXACT}", path=path, line=line)
    # Pandas writes integers as floats if a column has gaps; judgements have them as integers.
    is_whole = isinstance(value, float) and value.is_integer()
    return checked_id(path, line, as_text(int(value) if is_whole else value))


def checked_id(path: str, line: int, name: str) -> str:
    if (problem := fault(name)) is not None:
        raise InputError(f"the id {problem}", path=path, line=line)
    return name


def as_text(value: object) -> str:
    """A value as text: bytes as UTF-8, null as "", dates and decimals as people write them, everything else as JSON.

    >>> as_text("de"), as_text(b"de"), as_text(None), as_text(3), as_text(True), as_text(["a"])
    ('de', 'de', '', '3', 'true', '["a"]')
    >>> as_text(date(2026, 1, 2)), as_text(Decimal("1.500000000")), as_text(Decimal("200"))
    ('2026-01-02', '1.5', '200')
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, date | time):
        return str(value)
    if isinstance(value, Decimal):
        whole, point, fraction = f"{value:f}".partition(".")
        return f"{whole}{point}{fraction}".rstrip("0").rstrip(".") if point else whole
    return json.dumps(
        value,
        ensure_ascii=False,
        sort_keys=True,
        default=lambda inner: inner.decode() if isinstance(inner, bytes) else str(inner),
    )


def hashed_id(question: str, history: Sequence[Mapping[str, str]] = ()) -> str:
    """An id for a question without one: a hash of its text.

    >>> hashed_id("Who?") == hashed_id(" Who? "), hashed_id("Who?")
    (True, 'qd991a24e8e04')
    """
    content = question.strip() if not history else json.dumps([question.strip(), *history], ensure_ascii=False)
    return f"q{hashlib.sha256(content.encode()).hexdigest()[:12]}"
