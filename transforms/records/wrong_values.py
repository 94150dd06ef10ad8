"""Errors of pydantic in plain words, without the names of its types and of our classes."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "int_type": "must be a whole number",
        "int_parsing": "must be a whole number",
        "int_from_float": "must be a whole number",
        "int_parsing_size": "must be a smaller number",
        "float_type": "must be a number",
        "float_parsing": "must be a number",
        "finite_number": "must be a finite number",
        "bool_type": "must be true or false",
        "bool_parsing": "must be true or false",
        "string_type": "must be a text",
        "list_type": "must be a list",
        "tuple_type": "must be a list",
        "set_type": "must be a list",
        "frozen_set_type": "must be a list",
        "iterable_type": "must be a list",
        "dict_type": "must be a mapping of keys to values",
        "mapping_type": "must be a mapping of keys to values",
        "model_type": "must be a mapping of keys to values",
        "model_attributes_type": "must be a mapping of keys to values",
        "dataclass_type": "must be a mapping of keys to values",
        "greater_than": "must be greater than {gt}",
        "greater_than_equal": "must be at least {ge}",
        "less_than": "must be less than {lt}",
        "less_than_equal": "must be at most {le}",
        "multiple_of": "must be a multiple of {multiple_of}",
        "string_too_short": "must have at least {min_length} characters",
        "string_too_long": "must have at most {max_length} characters",
        "string_pattern_mismatch": "must have the form {pattern}",
        "too_short": "must have at least {min_length} entries, and has {actual_length}",
        "too_long": "must have at most {max_length} entries, and has {actual_length}",
        "none_required": "must be left out",
        "missing": "is missing",
    }
)
_TYPE = re.compile(
    r"[\w-]*(?:\[.*\])|function-\w+\(.*\)|constrained-\w+|literal\[.*|(?:str|int|float|bool|dict|list|none)"
)


def in_words(error: Mapping[str, Any]) -> str:
    """The problem of one of pydantic's errors.

    >>> in_words({"type": "int_parsing", "msg": "Input should be a valid integer, unable to parse string"})
    'must be a whole number'
    >>> in_words({"type": "less_than_equal", "msg": "", "ctx": {"le": 1.0}})
    'must be at most 1'
    >>> in_words({"type": "json_invalid", "msg": "Invalid JSON: EOF while parsing a value"})
    'is not JSON: EOF while parsing a value'
    >>> in_words({"type": "value_error", "msg": "Value error, is empty"})
    'is empty'
    """
    kind, context = error["type"], {name: _plain(value) for name, value in error.get("ctx", {}).items()}
    if kind in ("literal_error", "enum"):
        return f"must be {context['expected']}"
    if kind in ("string_too_short", "too_short") and context["min_length"] == "1":
        return "must not be empty"
    if kind == "json_invalid":
        return str(error["msg"]).replace("Invalid JSON", "is not JSON")
    if (words := _WORDS.get(kind)) is not None and "Value error" not in error["msg"]:
        return words.format_map(context)
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{message[:1].lower()}{message[1:]}"


def without_types(place: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """The keys that lead to a value, without the types that pydantic tried where a value may have several.

    >>> without_types(("judge", "service", "list[constrained-str]", 0)), without_types(("corpus", "constrained-str"))
    (('judge', 'service', 0), ('corpus',))
    """
    return tuple(part for part in place if not (isinstance(part, str) and _TYPE.fullmatch(part)))


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
