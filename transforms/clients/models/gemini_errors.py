"""Errors of google-genai and aiohttp as a `CallError`."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rankbeam.transforms.clients.google import errors
from rankbeam.transforms.clients.google.errors import shortened
from rankbeam.transforms.clients.google.rest import details_of, is_daily, wait_s
from rankbeam.transforms.clients.http.transport import kind_of_status, retry_after_s
from rankbeam.transforms.records.errors import CallError, Unreachable
from rankbeam.transforms.records.failures import FailureKind
from rankbeam.transforms.records.reply import Tokens


def translated(error: Exception, thinking: int | None, hide: Callable[[str], str], cut: Tokens) -> CallError:
    """The error."""
    from aiohttp import ClientConnectorError, ClientPayloadError
    from google.auth.exceptions import GoogleAuthError
    from google.genai.errors import APIError

    if isinstance(error, APIError):
        return _refusal(error, thinking, hide)
    if isinstance(error, GoogleAuthError):
        return errors.translated(error)
    if isinstance(error, json.JSONDecodeError):
        return CallError(FailureKind.UNAVAILABLE, f"the answer is not JSON: {error}", tokens=cut)
    message = shortened(hide(f"{type(error).__name__}: {error}"))
    if isinstance(error, ClientConnectorError):
        return Unreachable(message)
    tokens = cut if isinstance(error, ClientPayloadError) else Tokens()
    return CallError(FailureKind.UNAVAILABLE, message, tokens=tokens)


def message_of(error: Any) -> str:
    """The message of a refusal; "" of another error."""
    return str(getattr(error, "message", None) or "")


def _refusal(error: Any, thinking: int | None, hide: Callable[[str], str]) -> CallError:
    kind = kind_of_status(error.code)
    details = list(_details(error.details))
    away = _headers(error).get("Location")
    redirect = "" if away is None else f" redirects to {away}"
    message = f"HTTP {error.code}{redirect} {error.status or ''}: {error.message or ''}"
    if kind is FailureKind.INVALID and any(detail.get("reason") == "API_KEY_INVALID" for detail in details):
        kind = FailureKind.PERMISSION
    elif kind is FailureKind.INVALID and thinking is not None:
        message = f"{message} (asked with thinking: {thinking}, which some models refuse)"
    header = retry_after_s(_headers(error).get("Retry-After"), datetime.now(UTC))
    hinted = kind in (FailureKind.QUOTA, FailureKind.UNAVAILABLE)
    return CallError(
        kind,
        shortened(hide(message)),
        retry_after_s=wait_s(details, header) if hinted else None,
        stops_pool=kind is FailureKind.QUOTA and is_daily(details),
    )


def _headers(error: Any) -> Mapping[str, str]:
    return getattr(error.response, "headers", None) or {}


def _details(body: Any) -> Iterator[Mapping[str, Any]]:
    """The typed details of an error's body."""
    error = body.get("error") if isinstance(body, Mapping) else None
    return details_of(error) if isinstance(error, Mapping) else iter(())
