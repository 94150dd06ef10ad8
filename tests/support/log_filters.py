"""As much of Cloud Logging's query language as our filters have: comparisons, joined by AND."""

import re
from collections.abc import Mapping
from functools import reduce
from typing import Any

SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
COMPARISON = re.compile(r'([\w.]+) (=~|=|>=) (?:"([^"]*)"|([A-Z]+))')


def holds(text: str, entry: Mapping[str, Any]) -> bool:
    """Return whether a filter finds a log entry.

    >>> holds('severity >= WARNING AND resource.type = "a"', {"severity": "ERROR", "resource": {"type": "a"}})
    True

    Raises:
        ValueError: the filter has something else.
    """
    return all(_compares(part, entry) for part in text.split(" AND "))


def _compares(part: str, entry: Mapping[str, Any]) -> bool:
    match = COMPARISON.fullmatch(part)
    if match is None:
        raise ValueError(f"not known here: {part}")
    path, operator, quoted, severity = match.groups()
    value: Any = reduce(lambda level, key: level.get(key, {}), path.split("."), entry)
    if operator == ">=":
        return SEVERITIES.index(str(value)) >= SEVERITIES.index(severity)
    return bool(value == quoted) if operator == "=" else re.search(quoted, str(value)) is not None
