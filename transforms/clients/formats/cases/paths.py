"""Values at paths of rows, whose cells may hold lists and objects as text."""

import ast
import io
import json
import re
import tokenize
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from rankbeam.transforms.clients.storage.json_paths import finder, names_in


def keys_of(path: str) -> tuple[str, ...]:
    """The keys of a row that a path may begin with.

    >>> keys_of("inputs.query"), keys_of("[provider.id, prompt]")
    (('inputs',), ('provider', 'id', 'prompt'))
    """
    names = names_in(path)
    return names[:1] if names else tuple(re.findall(r"[A-Za-z_]\w*", path))


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """The value of a key, or at a path; a text on the way may hold an object as JSON or as a Python literal."""
    if path in row:
        return row[path]
    inner = {key: structured(value) for key in keys_of(path) if isinstance(value := row.get(key), str)}
    return finder(path)({**row, **inner} if inner else row)


def structured(value: Any) -> Any:
    """A text that holds a JSON list or object, or such a Python literal, as that value; other values unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        return value if is_numpy(value) else ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def is_numpy(text: str) -> bool:
    """Return whether a text has two strings side by side, which Python would join: NumPy prints arrays so.

    >>> is_numpy("['a' 'b']"), is_numpy("['a', 'b']")
    (True, False)
    """
    if text.lstrip().startswith(("[array(", "array(")):
        return True
    try:
        kinds = [
            entry.type for entry in tokenize.generate_tokens(io.StringIO(text).readline) if entry.type != tokenize.NL
        ]
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return False
    return any(one == other == tokenize.STRING for one, other in pairwise(kinds))
