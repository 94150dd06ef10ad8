"""What google-genai and aiohttp raise, as a `CallError`."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rankbeam.transforms.clients.google import errors
from rankbeam.transforms.clients.google.errors import shortened
from rankbeam.transforms.clients.http.connection import retry_after_s
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

_KINDS = {
    401: FailureKind.PERMISSION,
    403: FailureKind.PERMISSION,
    404: FailureKind.NOT_FOUND,
    408: FailureKind.TIMEOUT,
    429: FailureKind.QUOTA,
    501: FailureKind.INVALID,
    504: FailureKind.TIMEOUT,
}
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


def translated(error: Exception, thinking: int | None) -> CallError:
    """What went wrong.

    Args:
        error: of google-genai, google.auth, aiohttp or JSON.
        thinking: tokens that the model was allowed to think; None where the request does not say.
    """
    from google.auth.exceptions import GoogleAuthError
    from google.genai.errors import APIError

    if isinstance(error, APIError):
        return _refusal(error, thinking)
    if isinstance(error, GoogleAuthError):
        return errors.translated(error)
    if isinstance(error, json.JSONDecodeError):
        return CallError(FailureKind.UNAVAILABLE, f"the answer is not JSON: {error}")
    return CallError(FailureKind.UNAVAILABLE, shortened(f"{type(error).__name__}: {error}"))


def _refusal(error: Any, thinking: int | None) -> CallError:
    default = FailureKind.UNAVAILABLE if error.code >= 500 else FailureKind.INVALID
    kind = _KINDS.get(error.code, default)
    details = list(_details(error.details))
    said = f"HTTP {error.code} {error.status or ''}: {error.message or ''}"
    if kind is FailureKind.INVALID and any(detail.get("reason") == "API_KEY_INVALID" for detail in details):
        kind = FailureKind.PERMISSION
    elif kind is FailureKind.INVALID and thinking is not None:
        said = f"{said} (asked with thinking: {thinking}, which some models refuse)"
    return CallError(
        kind,
        shortened(said),
        retry_after_s=_wait_s(error, details) if kind in (FailureKind.QUOTA, FailureKind.UNAVAILABLE) else None,
        stops_pool=kind is FailureKind.QUOTA and _is_daily(details),
    )


def _details(body: Any) -> Iterator[Mapping[str, Any]]:
    """The typed details of an error's body."""
    error = body.get("error") if isinstance(body, Mapping) else None
    found = error.get("details") if isinstance(error, Mapping) else None
    yield from (detail for detail in found or () if isinstance(detail, Mapping))


def _wait_s(error: Any, details: list[Mapping[str, Any]]) -> float | None:
    for detail in details:
        delay = _DELAY.fullmatch(str(detail.get("retryDelay", "")))
        if delay is not None and str(detail.get("@type", "")).endswith("RetryInfo"):
            return float(delay[1])
    headers = getattr(error.response, "headers", None) or {}
    return retry_after_s(headers.get("Retry-After"), datetime.now(UTC))


def _is_daily(details: list[Mapping[str, Any]]) -> bool:
    """Whether a quota of the day is used up: it is not asked again today."""
    violations = [violation for detail in details for violation in detail.get("violations") or ()]
    return any("PerDay" in str(violation.get("quotaId", "")) for violation in violations)
