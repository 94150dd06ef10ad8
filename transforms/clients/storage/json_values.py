"""JSON values, read fast."""

import json
from typing import Any

from pydantic_core import SchemaValidator, ValidationError, core_schema, from_json

_ANY_OBJECT = SchemaValidator(core_schema.typed_dict_schema({}, extra_behavior="ignore"))


def value_of(text: str | bytes) -> Any:
    """A JSON value, in less than half the time of Python's own reader, which decides whether a text is invalid."""
    try:
        return from_json(text, cache_strings="keys")
    except (ValueError, TypeError):  # TypeError: a lone surrogate, which Python reads
        return json.loads(text)


def refuse_invalid(text: str | bytes) -> None:
    """Check that `value_of` has a value for a text, for objects without making their values: in half the time."""
    try:
        _ANY_OBJECT.validate_json(text)
    except (ValidationError, TypeError):  # a value of another type, or as in `value_of`
        value_of(text)
