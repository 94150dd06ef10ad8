"""Calls of the `http` retriever: send one request, receive its answer, translate its errors.

Answers and messages that leave this module hold no secrets.
"""

import base64
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

import httpx

from rankbeam.transforms.clients.clock import time_limit
from rankbeam.transforms.clients.http.template import URL
from rankbeam.transforms.clients.http.transport import (
    MOST_BYTES,
    Clients,
    error_of,
    kind_of_status,
    read_body,
    wait_in,
)
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.clients.secrets import REFERENCE, Secrets, resolve
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError, Unreachable
from rankbeam.transforms.records.reply import Reply

_MOST_BYTES_OF_AN_ERROR = 64 * 2**10
_SHOWN = 200


async def connect(parameters: Http) -> "HttpConnection":
    """Resolve the secrets and create the connection; refuses values that a header may not have."""
    secrets = await resolve(parameters.secret_places())
    values = {**parameters.environment, **secrets.values}
    own_headers = _headers(parameters, values)
    basic = _basic(parameters, values)
    if basic is not None:
        secrets = Secrets(secrets.values, derived=[basic])
        own_headers["Authorization"] = f"Basic {basic}"
    headers = httpx.Headers({"User-Agent": "rankbeam", "Accept": "application/json"})
    headers.update(own_headers)
    return HttpConnection(parameters, secrets, values, Clients(headers))


@dataclass(frozen=True)
class HttpConnection:
    """An open client of a service."""

    parameters: Http
    secrets: Secrets
    values: Mapping[str, str] = field(repr=False)
    clients: Clients = field(repr=False)

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  every attempt is the same
        try:
            async with time_limit(timeout_s):
                with self.clients.one() as client:
                    body = await self._body(client, self._request(client, json.loads(payload)))
                    return Reply(self._answer_json(body))
        except TimeoutError:
            problem = CallError(FailureKind.TIMEOUT, f"no complete answer within {timeout_s:g} s")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            problem = error_of(error, self.secrets.hide)
        except CallError as error:
            problem = error
        if isinstance(problem, Unreachable):
            raise problem from None
        message = self.secrets.hide(problem.message)
        # `from None`: httpx's errors hold the request, and some quote its headers, which may hold secrets.
        raise CallError(
            problem.kind, message, retry_after_s=problem.retry_after_s, stops_pool=problem.stops_pool
        ) from None

    async def close(self) -> None:
        await self.clients.close()

    def _request(self, client: httpx.AsyncClient, payload: Mapping[str, Any]) -> httpx.Request:
        values = {**self.values, **{f"{{{name}}}": value for name, value in payload.items()}}
        body = fill_template(self.parameters.template, values)
        content = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = client.headers.copy()
        if content is not None:
            headers.setdefault("Content-Type", "application/json")
        url = _url(self.parameters, values)
        return client.build_request(self.parameters.method, url, headers=headers, content=content)

    @asynccontextmanager
    async def _response(self, client: httpx.AsyncClient, request: httpx.Request) -> AsyncIterator[httpx.Response]:
        """Send a request; the response is read in the block. A refusal is raised."""
        response = await client.send(request, stream=True)
        try:
            if not response.is_success:
                raise self._refusal(response, await read_body(response.aiter_bytes(), _MOST_BYTES_OF_AN_ERROR))
            yield response
        finally:
            await response.aclose()

    async def _body(self, client: httpx.AsyncClient, request: httpx.Request) -> bytes:
        async with self._response(client, request) as response:
            body = await read_body(response.aiter_bytes(), MOST_BYTES)
        if len(body) > MOST_BYTES:
            raise CallError(FailureKind.INVALID, f"the answer has more than {MOST_BYTES >> 20} MB; lower top_k")
        return body

    def _refusal(self, response: httpx.Response, body: bytes) -> CallError:
        status = response.status_code
        location = (
            f" to {response.headers['Location']}, which is not followed; correct the url"
            if "Location" in response.headers
            else ""
        )
        details = self._shown(f"{location} {body.decode(errors='replace')}".rstrip())
        wait = wait_in(response.headers, body.decode(errors="replace"), status)
        message = f"HTTP {status} {response.reason_phrase}{details}"
        return CallError(kind_of_status(status), message, retry_after_s=wait)

    def _answer_json(self, body: bytes) -> str:
        """The answer as JSON without secrets; `read` checks later whether it holds a ranking."""
        try:
            value = json.loads(body, parse_constant=_refuse_constant)
            answer = self.secrets.hide_in(value)
        except (ValueError, RecursionError) as error:
            start = self._shown(body[:_MOST_BYTES_OF_AN_ERROR].decode(errors="replace"))
            raise CallError(FailureKind.MALFORMED, f"the answer is not JSON: {error}, found {start!r}") from error
        if answer != value and self.parameters.has_hidden_ids(answer, value):
            raise CallError(
                FailureKind.INVALID,
                "a document's id holds the value of a secret, which rankbeam hides: if that value is not a secret, "
                "give it in a parameter or variable whose name does not look like a secret's",
            )
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # lone surrogates cannot be stored

    def _shown(self, text: str) -> str:
        return self.secrets.hide(text)[:_SHOWN]  # in this order: half a secret would not be recognised


def fill_template(template: Any, values: Mapping[str, Any]) -> Any:
    """The body made from a template, with placeholders replaced by values.

    >>> fill_template({"q": "{query}", "size": "{top_k}", "x": ["k={top_k}"]}, {"{query}": "who?", "{top_k}": 10})
    {'q': 'who?', 'size': 10, 'x': ['k=10']}
    """
    if isinstance(template, str):
        return values[template] if template in values else _in_text(template, values)
    if isinstance(template, list):
        return [fill_template(item, values) for item in template]
    if isinstance(template, dict):
        return {key: fill_template(item, values) for key, item in template.items()}
    return template


def _in_text(template: str, values: Mapping[str, Any], encoded: Callable[[str], str] = str) -> str:
    # In one pass, so that a value that looks like a placeholder is not replaced.
    names = tuple(name for name in values if name.startswith("{"))
    return _pattern(names).sub(lambda match: encoded(_text(values[match[0]])), template)


@lru_cache(maxsize=256)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """References, and the placeholders that have values."""
    return re.compile("|".join((REFERENCE.pattern, *map(re.escape, names))))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    encoded = quote(text, safe="")
    return encoded.replace(".", "%2E") if encoded in (".", "..") else encoded  # as path segments they would be dropped


def _url(parameters: Http, values: Mapping[str, Any]) -> str:
    match = URL.fullmatch(parameters.url)
    rest = _in_text((match["rest"] if match else None) or "/", values, _quoted)
    added = "&".join(
        f"{_quoted(name)}={_quoted(_in_text(_text(value), values))}" for name, value in parameters.params.items()
    )
    joint = "" if not added else "&" if "?" in rest else "?"
    return f"{parameters.address()}{rest}{joint}{added}"


def _headers(parameters: Http, values: Mapping[str, str]) -> dict[str, str]:
    headers = {name: _in_text(text, values) for name, text in parameters.headers.items()}
    for name, text in headers.items():
        if not (text.isascii() and text.isprintable()):
            raise InputError(f"header {name}: the value of its reference holds characters that headers may not have")
    return headers


def _basic(parameters: Http, values: Mapping[str, str]) -> str | None:
    """User and password of the URL, encoded for the header Authorization."""
    match = URL.fullmatch(parameters.url)
    if match is None or match["user"] is None:
        return None
    user, _, password = _in_text(match["user"], values, _quoted).partition(":")
    return base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
