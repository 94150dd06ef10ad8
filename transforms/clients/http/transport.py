"""HTTP as the connections of services use it: clients, whole answers, and errors as kinds of failures."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Self, cast
from weakref import WeakKeyDictionary

import httpx

from rankbeam.transforms.records.errors import CallError, FailureKind, InputError, Unreachable
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens

MOST_BYTES = 64 * 2**20
_SMALL_BYTES, _MOST_LARGE = 4 * 2**20, 4
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()  # of large bodies
_CALLS_PER_CLIENT = 8
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d+)?)(ms|[dhms]|)", re.ASCII)
_DURATION = re.compile(r"\d{1,9}(?:\.\d+)?|(?:\d{1,9}(?:\.\d+)?(?:ms|[dhms]))+", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_RETRY_INFO = re.compile(r'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d+)?)s"', re.ASCII)  # of Google's services and gateways
_UNKNOWN_ISSUER = re.compile("CERTIFICATE_VERIFY_FAILED.*(?:self[- ]signed|issuer)")
_ENCODINGS = ("gzip", "deflate")  # 64 kB, which are read at once, hold at most 64 MB in these

_KINDS = {
    401: FailureKind.PERMISSION,
    403: FailureKind.PERMISSION,
    404: FailureKind.NOT_FOUND,
    407: FailureKind.PERMISSION,
    408: FailureKind.TIMEOUT,
    409: FailureKind.UNAVAILABLE,
    410: FailureKind.NOT_FOUND,
    425: FailureKind.UNAVAILABLE,
    429: FailureKind.QUOTA,
    501: FailureKind.INVALID,
    504: FailureKind.TIMEOUT,
    505: FailureKind.INVALID,
}


@contextmanager
def usable_environment() -> Iterator[None]:
    """Refuse environment variables that an httpx client created in this block cannot use."""
    try:
        yield
    except OSError as error:
        raise InputError(f"certificates of SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {error}") from error
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise InputError(f"the proxy in {_proxies()} cannot be used: {error}") from error


class Clients:
    """Several httpx clients with a few connections each.

    For every request httpx iterates over all connections of its client, several times: with hundreds of calls in flight
    on one client, httpx and not the service would limit the rate.
    """

    def __init__(self, headers: httpx.Headers) -> None:
        self._headers = httpx.Headers({"Accept-Encoding": ", ".join(_ENCODINGS)})
        self._headers.update(headers)
        with usable_environment():
            self._trust = httpx.create_ssl_context()
            self._open = {self._new(): 0}

    @contextmanager
    def one(self) -> Iterator[httpx.AsyncClient]:
        free = (client for client, calls in self._open.items() if calls < _CALLS_PER_CLIENT)
        client = next(free, None) or self._new()
        self._open[client] = self._open.get(client, 0) + 1
        try:
            yield client
        finally:
            self._open[client] -= 1

    def _new(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers=self._headers,
            verify=self._trust,
            timeout=None,  # noqa: S113  the call as a whole has a timeout, not each read
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # no answer may change the next request
            event_hooks={"response": [_check_answer]},
        )

    async def close(self) -> None:
        for client in self._open:
            await client.aclose()


async def _check_answer(response: httpx.Response) -> None:
    response.stream = _OnlyAnswer(response)


class _OnlyAnswer(httpx.AsyncByteStream):
    """A body; if more bytes follow it, its connection is closed, for the next call would read them as its answer."""

    def __init__(self, response: httpx.Response) -> None:
        self._body = cast("Any", response.stream)
        self._encoding = response.headers.get("Content-Encoding", "")
        self._protocol = self._body._stream._httpcore_stream._stream._connection._h11_state  # nothing public has it

    async def __aiter__(self) -> AsyncIterator[bytes]:
        compressions = re.findall(r"\b(?:gzip|deflate|br|zstd)\b", self._encoding.lower())
        if len(compressions) > 1 or not {*compressions} <= {*_ENCODINGS}:
            allowed = " or ".join(_ENCODINGS)
            raise httpx.DecodingError(f"the answer has Content-Encoding {self._encoding}; it may be {allowed}")
        async for part in self._body:
            yield part

    async def aclose(self) -> None:
        if self._protocol.trailing_data[0]:
            self._protocol.send_failed()  # so httpcore does not use the connection again
        await self._body.aclose()


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The seconds that the header Retry-After asks to wait; None without a valid one.

    A time of day counts from the Date of the response, for the service's clock may differ from this machine's.

    >>> times = {"date": "Wed, 21 Oct 2026 07:27:00 GMT", "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}
    >>> retry_after_s(times), retry_after_s({"retry-after": "7"})
    (60.0, 7.0)
    """
    value = headers.get("retry-after", "")
    if (seconds := _seconds(value)) is not None or (then := _time_of_day(value)) is None:
        return seconds
    now = _time_of_day(headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (then - now).total_seconds())


def wait_in(headers: Mapping[str, str], body: str = "", status: int = 429) -> float | None:
    """The seconds that a refusal asks to wait, by any of the hints that services give; None without one.

    A limit counts as used up if its remainder is 0, or if it is missing in a refusal because of a limit (429).

    >>> wait_in({"retry-after-ms": "1500"}), wait_in({"retry-after": "0.3s"}), wait_in({}, '{"retryDelay": "3.5s"}')
    (1.5, 0.3, 3.5)
    >>> wait_in({"x-ratelimit-reset-requests": "6m0s"}), wait_in({"x-ratelimit-remaining-tokens": "0"})
    (360.0, None)
    """
    milliseconds = headers.get("retry-after-ms", "")
    if (seconds := _seconds(f"{milliseconds}ms")) is not None or (seconds := _seconds(milliseconds)) is not None:
        return seconds
    if (seconds := retry_after_s(headers)) is not None:
        return seconds
    if (delay := _RETRY_INFO.search(body)) is not None:
        return float(delay[1])
    unknown = "0" if status == 429 else ""
    spent = [name for name in ("requests", "tokens") if headers.get(f"x-ratelimit-remaining-{name}", unknown) == "0"]
    waits = [_seconds(headers.get(f"x-ratelimit-reset-{name}", "")) for name in spent]
    return max((wait for wait in waits if wait is not None), default=None)


def _seconds(text: str) -> float | None:
    """A number of seconds such as "2.5" or "1m2.5s"; None for any other text."""
    if _DURATION.fullmatch(text.strip()) is None:
        return None
    return sum(float(number) * _SECONDS[unit or "s"] for number, unit in _AMOUNT.findall(text))


def _time_of_day(text: str) -> datetime | None:
    try:
        time = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return time.replace(tzinfo=time.tzinfo or UTC)


def kind_of_status(status: int) -> FailureKind:
    """The kind of a failure with this HTTP status.

    >>> kind_of_status(425), kind_of_status(418)
    (<FailureKind.UNAVAILABLE: 'unavailable'>, <FailureKind.INVALID: 'invalid'>)
    """
    return _KINDS.get(status, FailureKind.UNAVAILABLE if status >= 500 else FailureKind.INVALID)


def kind_of(error: Exception) -> FailureKind:
    if isinstance(error, httpx.TimeoutException):
        return FailureKind.TIMEOUT
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol | httpx.InvalidURL):
        return FailureKind.INVALID
    return FailureKind.MALFORMED if isinstance(error, httpx.DecodingError) else FailureKind.UNAVAILABLE


def error_of(error: Exception, hide: Callable[[str], str], tokens: Tokens = NO_TOKENS) -> CallError:
    """An error of httpx as a `CallError` with its message alone: the library's error holds the request."""
    message = hide(f"{type(error).__name__}: {_reason(error)}")
    is_unreachable = isinstance(error, httpx.ConnectError | httpx.ProxyError)
    return unreachable(message) if is_unreachable else CallError(kind_of(error), message, tokens=tokens)


def unreachable(message: str) -> Unreachable:
    """The error of a service without a connection, with advice on its certificate or the proxy."""
    if _UNKNOWN_ISSUER.search(message):
        return Unreachable(f"{message}; if you trust the certificate, name its file in SSL_CERT_FILE")
    return Unreachable(f"{message}; the environment names a proxy ({names})" if (names := _proxies()) else message)


def _reason(error: BaseException) -> str:
    """The message of an error, or of the first error behind it that has one."""
    behind = error.__cause__ or error.__context__
    return str(error) if str(error) or behind is None else _reason(behind)


def _proxies() -> str:
    """The variables of the environment that name a proxy; their values may hold passwords."""
    return ", ".join(name for name in os.environ if name.upper() in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"))


class BodySize:
    """Counts the bytes of a body; beyond `_SMALL_BYTES`, only a few bodies are read at a time.

    Hundreds of calls in flight would otherwise hold hundreds of bodies of `MOST_BYTES`.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._turn: asyncio.Semaphore | None = None

    async def __aenter__(self) -> Self:
        return self

    async def add(self, part: bytes) -> int:
        """Count a part, after waiting for a turn if need be; returns the bytes so far."""
        self._bytes += len(part)
        if self._bytes > _SMALL_BYTES and self._turn is None:
            turns = _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_MOST_LARGE))
            await turns.acquire()
            self._turn = turns
        return self._bytes

    async def __aexit__(self, *_: object) -> None:
        if self._turn is not None:
            self._turn.release()


async def read_body(body: AsyncIterator[bytes], most: int) -> bytes:
    """A body, in full; of a longer one, a little more than its first `most` bytes."""
    parts = []
    async with BodySize() as size:
        async for part in body:
            parts.append(part)
            if await size.add(part) > most:
                break
    return b"".join(parts)
