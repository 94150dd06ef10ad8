"""Refusals of Google's REST APIs as a `CallError`."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rankbeam.transforms.clients.google.errors import shortened
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


def refusal(kind: FailureKind, status: int, body: bytes, retry_after_s: float | None) -> CallError:
    """The error of a response whose HTTP status is not 200.

    Args:
        kind: kind of failures with this status.
        status: HTTP status.
        body: content of the response: Google's form of an error, or another if a proxy answers.
        retry_after_s: seconds that the header Retry-After asks to wait; None without the header.
    """
    error = _error(body)
    name, text = error.get("status") or "", error.get("message") or body.decode(errors="replace")
    details = list(details_of(error))
    wait = wait_s(details, retry_after_s) if kind in (FailureKind.QUOTA, FailureKind.UNAVAILABLE) else None
    message = shortened(f"HTTP {status} {name}: {text}")
    return CallError(kind, message, retry_after_s=wait, stops_pool=kind is FailureKind.QUOTA and is_daily(details))


def details_of(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The typed details of an error."""
    return mappings(error.get("details"))


def wait_s(details: list[Mapping[str, Any]], otherwise: float | None) -> float | None:
    """The seconds that RetryInfo asks to wait; another value without it."""
    for detail in details:
        delay = _DELAY.fullmatch(str(detail.get("retryDelay", "")))
        if delay is not None and str(detail.get("@type", "")).endswith("RetryInfo"):
            return float(delay[1])
    return otherwise


def is_daily(details: list[Mapping[str, Any]]) -> bool:
    """Return whether a quota of the day is used up: it is not asked again today."""
    violations = [violation for detail in details for violation in mappings(detail.get("violations"))]
    return any("PerDay" in str(violation.get("quotaId", "")) for violation in violations)


def mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a list; none for any other value."""
    return (item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else iter(())


def _error(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else {}
