"""Ids and texts of other types: numbers, bytes, dates and JSON values, as JSON, Parquet and BigQuery have them."""

import json
import math
from datetime import date, time
from decimal import Decimal
from typing import Any

from rankbeam.transforms.clients.formats import ids
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import shortened


def json_id(path: str, line: int, value: Any) -> str:
    """An identifier from JSON."""
    if not isinstance(value, str) and _is_no_id(value):
        raise InputError(f"the id is {shortened(as_text(value))}; an id is a text or a number", path=path, line=line)
    if isinstance(value, float) and abs(value) >= ids.LEAST_INEXACT:
        raise InputError(f"the id {ids.INEXACT}", path=path, line=line)
    # As pandas writes integers of a column with gaps; judgements have them as integers.
    is_whole = isinstance(value, float) and value.is_integer()
    return checked_id(path, line, as_text(int(value) if is_whole else value))


def _is_no_id(value: Any) -> bool:
    return isinstance(value, bool | list | dict) or (isinstance(value, float) and not math.isfinite(value))


def checked_id(path: str, line: int, name: str) -> str:
    if (problem := ids.fault(name)) is not None:
        raise InputError(f"the id {problem}", path=path, line=line)
    return name


def as_text(value: object) -> str:
    """A value as text: bytes decoded as UTF-8, null as "", dates and decimals as people write them, all else as JSON.

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
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=_json_value)


def _json_value(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
