"""Data as text inside a page: JSON that no HTML parser can mistake, and columns of numbers in base64."""

import base64
import json
from typing import Any

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray

_ESCAPES = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029\x7f"}


def as_json(document: Any) -> str:
    r"""JSON without any letter that means something to HTML or to JavaScript's line ends.

    >>> as_json("</script>\u2028")
    '"\\u003c/script\\u003e\\u2028"'
    """
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def numbers(column: FloatArray) -> dict[str, Any]:
    """A column of numbers, exactly: the distinct ones, and their positions by row; NaN for a missing value."""
    distinct, codes = np.unique(column, return_inverse=True)
    return {"values": _base64(distinct.astype("<f8")), **positions(codes)}


def words(column: list[str]) -> dict[str, Any]:
    """A column of words: the distinct ones, and for each row which."""
    distinct = list(dict.fromkeys(column))
    places = {value: position for position, value in enumerate(distinct)}
    return {"values": distinct, **positions(np.array([places[value] for value in column], np.int64))}


def positions(codes: Any) -> dict[str, Any]:
    """Positions in base64, in one, two or four bytes each."""
    largest = int(codes.max(initial=0))
    width = 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4
    return {"codes": _base64(codes.astype(f"<u{width}")), "bytes": width}


def _base64(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")
