"""The HTTP session of google-genai: it follows no redirects, stores no cookies, and limits the size of replies.

The library's own session would send the key in `x-goog-api-key` wherever a redirect leads. Errors of aiohttp and of the
library become `CallError`s.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import aiohttp

from rankbeam.transforms.clients.google import errors
from rankbeam.transforms.clients.google.errors import is_daily, mappings, short_message, wait_s
from rankbeam.transforms.clients.http.transport import kind_of_status, read_body, retry_after_s, unreachable
from rankbeam.transforms.clients.models.replies import MOST_BYTES, too_large, unreadable
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Tokens

REQUEST_OPTIONS = {"allow_redirects": False}  # options of aiohttp for every request


class _Response(aiohttp.ClientResponse):
    """A response for the library, which reads answers with `text` and refusals with `json`."""

    async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
        """The body of an answer; raises a CallError if it is too large, or not text."""
        try:
            return (await self._read_body()).decode(encoding or "utf-8", errors)
        except UnicodeDecodeError as error:
            raise unreadable(error) from None

    async def json(self, **_: Any) -> Any:
        """The body of a refusal, in the form that the library expects."""
        body = await self._read_body()
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            value = None
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, dict) and isinstance(value.get("error"), dict):
            return value
        return {"message": body.decode(errors="replace"), "status": self.reason}

    async def _read_body(self) -> bytes:
        try:
            body = await read_body(self.content.iter_any(), MOST_BYTES)
            if len(body) > MOST_BYTES:
                raise too_large()
        except BaseException:
            self.close()  # otherwise the connection of a reply that breaks off stays open
            raise
        return body


def session() -> aiohttp.ClientSession:
    """A session with any number of connections; called on the loop that makes the calls."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        response_class=_Response,
        trust_env=True,
    )


def translated(error: Exception, thinking: int | None, hide: Callable[[str], str], cut: Tokens) -> CallError:
    from google.auth.exceptions import GoogleAuthError
    from google.genai.errors import APIError

    if isinstance(error, APIError):
        return _refusal(error, thinking, hide)
    if isinstance(error, GoogleAuthError):
        return errors.call_error(error)
    if isinstance(error, json.JSONDecodeError):
        return CallError(FailureKind.UNAVAILABLE, f"the answer is not JSON: {error}", tokens=cut)
    message = short_message(hide(f"{type(error).__name__}: {error}"))
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError):
        return unreachable(message)
    tokens = cut if isinstance(error, aiohttp.ClientPayloadError) else Tokens()
    return CallError(FailureKind.UNAVAILABLE, message, tokens=tokens)


def message_of(error: Any) -> str:
    """The message of a refusal; "" for other errors."""
    return str(getattr(error, "message", None) or "")


def _refusal(error: Any, thinking: int | None, hide: Callable[[str], str]) -> CallError:
    kind = kind_of_status(error.code)
    details = list(_details(error.details))
    location = _headers(error).get("Location")
    redirect = "" if location is None else f" redirects to {location}"
    message = f"HTTP {error.code}{redirect} {error.status or ''}: {error.message or ''}"
    if kind is FailureKind.INVALID and any(detail.get("reason") == "API_KEY_INVALID" for detail in details):
        kind = FailureKind.PERMISSION
    elif kind is FailureKind.INVALID and thinking is not None:
        message = f"{message} (asked with thinking: {thinking}, which some models refuse)"
    header = retry_after_s(_headers(error))
    hinted = kind in (FailureKind.QUOTA, FailureKind.UNAVAILABLE)
    return CallError(
        kind,
        short_message(hide(message)),
        retry_after_s=wait_s(details, header) if hinted else None,
        stops_pool=kind is FailureKind.QUOTA and is_daily(details),
    )


def _headers(error: Any) -> Mapping[str, str]:
    return getattr(error.response, "headers", None) or {}


def _details(body: Any) -> Iterator[Mapping[str, Any]]:
    """The typed details of an error's body."""
    error = body.get("error") if isinstance(body, Mapping) else None
    return mappings(error.get("details")) if isinstance(error, Mapping) else iter(())
