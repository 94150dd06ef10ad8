"""Errors of pydantic in plain words, without the names of its types and of our classes."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from rankbeam.transforms.kernels.grouping import grouped

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
_CHOICES = ("literal_error", "enum", "none_required")
_MUST_BE = "must be "
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
    if (joined := error.get("joined")) is not None:
        return str(joined)
    kind, context = error["type"], {name: _plain(value) for name, value in error.get("ctx", {}).items()}
    if kind in ("literal_error", "enum"):
        return f"must be {context['expected']}"
    if kind in ("string_too_short", "too_short") and context["min_length"] == "1":
        return "must not be empty"
    if kind == "json_invalid":
        return str(error["msg"]).replace("Invalid JSON", "is not JSON")
    if kind == "string_pattern_mismatch":
        context["pattern"] = _in_letters(context["pattern"])
    if (words := _WORDS.get(kind)) is not None and "Value error" not in error["msg"]:
        return words.format_map(context)
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{message[:1].lower()}{message[1:]}"


def in_one(errors: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One error for each value; pydantic reports one for each type that the value could have.

    If a value has one of the types and is wrong in another way, only that is reported.

    >>> tried = [("string_type", "str"), ("list_type", "list[str]")]
    >>> errors = in_one({"type": kind, "loc": ("to", name), "msg": ""} for kind, name in tried)
    >>> [in_words(error) for error in errors]
    ['must be a text or a list']
    """
    by_place = grouped((without_types(error["loc"]), error) for error in errors)
    inner = {place[:length] for place in by_place for length in range(len(place))}
    joined = []
    for place, place_errors in by_place.items():
        if len(place_errors) == 1 and place_errors[0]["loc"] == place:
            joined.append(dict(place_errors[0]))
            continue
        specific = [error for error in place_errors if not _is_of_type(error)]
        if not specific and place in inner:
            continue
        words = dict.fromkeys(
            map(in_words, specific or [error for error in place_errors if error["type"] != "none_required"])
        )
        joined.append({**place_errors[0], "joined": _any_of([*words])})
    return joined


def _any_of(problems: list[str]) -> str:
    if not all(text.startswith(_MUST_BE) for text in problems):
        return "; or ".join(problems)
    return _MUST_BE + " or ".join(text.removeprefix(_MUST_BE) for text in problems)


def _is_of_type(error: Mapping[str, Any]) -> bool:
    return error["type"].endswith(("_type", "_parsing", "_from_float")) or error["type"] in _CHOICES


def without_types(place: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """The keys that lead to a value, without the types that pydantic tried if a value may have several.

    >>> without_types(("judge", "service", "list[constrained-str]", 0)), without_types(("corpus", "constrained-str"))
    (('judge', 'service', 0), ('corpus',))
    """
    return tuple(part for part in place if not (isinstance(part, str) and _TYPE.fullmatch(part)))


def _in_letters(pattern: str) -> str:
    """The pattern of a resource's name with a letter for each part; other patterns as they are.

    >>> _in_letters("^projects/[^/]+/(collections/[^/]+/)?dataStores/[a-z0-9-]+$")
    'projects/P/[collections/C/]dataStores/D'
    """
    if not pattern.startswith("^projects/"):
        return pattern
    form = re.sub(r"(\w)(\w*)/\[[^]]+\]\+", lambda part: f"{part[1]}{part[2]}/{part[1].upper()}", pattern.strip("^$"))
    return form.replace("(", "[").replace(")?", "]")


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
