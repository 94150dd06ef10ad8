"""Read JSON fast, and evaluate paths into its values: JMESPath expressions.

A path that consists of names only, such as `hits.hits` or `_source.text`, is evaluated here: JMESPath is ten times
slower.
"""

import ast
import io
import json
import re
import tokenize
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import jmespath
import jmespath.exceptions
from pydantic_core import SchemaValidator, ValidationError, core_schema, from_json

_ANY_OBJECT = SchemaValidator(core_schema.typed_dict_schema({}, extra_behavior="ignore"))
Find = Callable[[Any], Any]
_NAME = r'[A-Za-z_][A-Za-z0-9_]*|"[^"\\]+"'
_LITERAL = re.compile(r"'[^']*'|`[^`]*`")
_PLAIN = re.compile(rf"(?:{_NAME})(?:\.(?:{_NAME}))*")


def value_of(text: str | bytes) -> Any:
    """Parse JSON in less than half the time of Python's parser, which still decides whether a text is invalid."""
    try:
        return from_json(text, cache_strings="keys")
    except (ValueError, TypeError):  # TypeError: a lone surrogate, which Python accepts
        return json.loads(text)


def refuse_invalid(text: str | bytes) -> None:
    """Check that `value_of` can parse a text; for objects this takes half the time, as no values are made."""
    try:
        _ANY_OBJECT.validate_json(text)
    except (ValidationError, TypeError):  # not an object, or as in `value_of`
        value_of(text)


def check_path(path: str) -> None:
    try:
        finder(path)
    except jmespath.exceptions.JMESPathError as error:
        reason = str(error).splitlines()[0].rstrip(":")
        hint = 'names with other characters than letters, digits and _ need double quotes: "my-id"'
        raise ValueError(f"{path!r} is not valid JMESPath: {reason}; {hint}") from error


@cache
def finder(path: str) -> Find:
    names = names_in(path)
    if names is None:
        search: Find = jmespath.compile(path).search
        return search
    if len(names) > 1:
        return _nested_finder(names)
    (name,) = names
    return lambda value: value.get(name) if type(value) is dict else None


@cache
def names_in(path: str) -> tuple[str, ...] | None:
    """The names in a path that consists of names only; None for other paths."""
    names = re.findall(_NAME, path) if _PLAIN.fullmatch(path) else None
    return None if names is None else tuple(name.strip('"') for name in names)


def _nested_finder(names: tuple[str, ...]) -> Find:
    def find(value: Any) -> Any:
        for name in names:
            if type(value) is not dict:
                return None
            value = value.get(name)
        return value

    return find


def keys_of(path: str) -> tuple[str, ...]:
    """The keys of a row with which a path may begin.

    >>> keys_of("outputs.answer"), keys_of("[outputs][?type(@) == 'string'] | [0]")
    (('outputs',), ('outputs',))
    """
    names = names_in(path)
    return names[:1] if names else tuple(re.findall(r"[A-Za-z_]\w*(?!\w*\()", _LITERAL.sub("", path)))


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """The value of a key, or at a path; a row's text may hold an object as JSON or as a Python literal."""
    if path in row:
        return row[path]
    inner = {key: parse_literal(value) for key in keys_of(path) if isinstance(value := row.get(key), str)}
    return finder(path)({**row, **inner} if inner else row)


def first_of(values: Mapping[str, Any], *names: str) -> Any:
    """The first of the named values that is neither None nor empty."""
    return next((values[name] for name in names if values.get(name) not in (None, "")), None)


def parse_literal(value: Any) -> Any:
    """Parse a text that holds a list or object, as JSON or as a Python literal; other values are unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        return value if is_numpy(value) else ast.literal_eval(value.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # TypeError: a list as a key
        return value


def is_numpy(text: str) -> bool:
    """Return whether a text has adjacent strings, which Python would join: NumPy prints arrays like this."""
    if text.lstrip().startswith(("[array(", "array(")):
        return True
    try:
        kinds = [
            entry.type for entry in tokenize.generate_tokens(io.StringIO(text).readline) if entry.type != tokenize.NL
        ]
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return False
    return any(kind == following == tokenize.STRING for kind, following in pairwise(kinds))
