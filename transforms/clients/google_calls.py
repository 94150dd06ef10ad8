"""Calls to Google's services over gRPC: credentials, connections with room, and errors in our words.

Whoever uses this makes one attempt a call, through `Channels.attempt`. Google's libraries are imported where they
are used: they take longer to load than all the rest.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from transforms.clients.addresses import Address, address_of
from transforms.clients.secrets import HIDDEN
from transforms.records.errors import CallError, InputError
from transforms.records.failures import FailureKind

T = TypeVar("T")

CALLS_PER_CONNECTION = 90
"""Servers commonly refuse more than 100 streams; the client would queue a further call after it was paced. A call that
was given up may still be one at the server, so there is room to spare."""
_CALLS_BEFORE_ANOTHER = 60
_CONNECT_S = 5.0

_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # otherwise all channels share one connection
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.keepalive_time_ms", 300_000),  # servers may close connections that are pinged more often
    ("grpc.keepalive_timeout_ms", 20_000),  # also how long sent data may stay unacknowledged before we reconnect
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5_000),  # calls fail at once meanwhile: by default that lasts up to two minutes
)
_LONGEST_MESSAGE = 300
_TOKENS = re.compile(r"(?i)\b(?:bearer\s+\S+|ya29\.\S+|eyJ[\w-]+\.[\w.-]+)")
_SIGN_IN = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file"
_REFUSED_GRANTS = re.compile(r"invalid_grant|invalid_client|unauthorized_client|invalid_scope|Reauthentication")


@dataclass
class _Line:
    client: Any
    calls: int = 0


class Channels:
    """Clients of one service, each with its own connection, opened when those that are open have no room left."""

    def __init__(self, address: Address, credentials: Any, client: Any, transport: Any) -> None:
        """No connection yet.

        Args:
            address: of the service.
            credentials: Google's; None for a server without TLS.
            client: class of the async client.
            transport: class of its gRPC transport.
        """
        self._address, self._credentials = address, credentials
        self._client, self._transport = client, transport
        self._lines: list[_Line] = []

    async def connect(self) -> None:
        """Open the first connection. If that takes long, calls go ahead, and say what is wrong.

        Those that are made while there is none would wait in the client, and arrive in a heap.
        """
        line = self._line()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CONNECT_S):
                await line.client.transport.grpc_channel.channel_ready()

    async def attempt(self, ask: Callable[[Any], Awaitable[T | None]]) -> T:
        """Ask once, on a connection with room.

        Args:
            ask: makes the call with the client that it is given.

        Raises:
            CallError: there is no answer.
        """
        import grpc
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError

        with self._room() as client:
            try:
                answer = await ask(client)
            except (GoogleAPIError, GoogleAuthError, grpc.RpcError) as error:
                raise translated(error) from error
        if answer is None:  # what gRPC makes of bytes that are no message
            raise CallError(FailureKind.MALFORMED, "the answer cannot be decoded")
        return answer

    async def close(self) -> None:
        """Close every connection."""
        while self._lines:
            await self._lines.pop().client.transport.close()

    @contextmanager
    def _room(self) -> Iterator[Any]:
        line = next((each for each in self._lines if each.calls < CALLS_PER_CONNECTION), None) or self._line()
        line.calls += 1
        if all(each.calls >= _CALLS_BEFORE_ANOTHER for each in self._lines):
            self._line()  # so that it is open when it is needed
        try:
            yield line.client
        finally:
            line.calls -= 1

    def _line(self) -> _Line:
        """Another connection; it begins to open."""
        line = _Line(self._open())
        line.client.transport.grpc_channel.get_state(try_to_connect=True)
        self._lines.append(line)
        return line

    def _open(self) -> Any:
        import grpc.aio

        if not self._address.secure:
            channel = grpc.aio.insecure_channel(self._address.target, options=_OPTIONS)
            return self._client(transport=self._transport(channel=channel))
        return self._client(
            transport=self._transport(
                host=self._address.target,
                credentials=self._credentials,
                channel=self._secure_channel,
                always_use_jwt_access=True,  # as the client does: service accounts need no token server
            )
        )

    def _secure_channel(self, target: str, **settings: Any) -> Any:
        return self._transport.create_channel(target, **{**settings, "options": _OPTIONS})


async def open_channels(endpoint: str, library: Callable[[], tuple[Any, Any]]) -> Channels:
    """Channels to a service, with the credentials of the environment.

    Args:
        endpoint: an `Endpoint`.
        library: imports the classes of the client and of its transport.

    Raises:
        InputError: there are no credentials, and the server needs some.
    """
    # Importing takes seconds, and so does asking the metadata server who we are: other calls go on meanwhile.
    client, transport = await asyncio.to_thread(library)
    address = await address_of(endpoint)
    credentials = await asyncio.to_thread(_credentials, transport.AUTH_SCOPES) if address.secure else None
    channels = Channels(address, credentials, client, transport)
    await channels.connect()
    return channels


def _credentials(scopes: tuple[str, ...]) -> Any:
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
    from google.auth.transport.requests import Request

    try:
        credentials = google.auth.default(default_scopes=scopes)[0]
    except (DefaultCredentialsError, OSError) as error:
        raise InputError(f"no credentials for Google Cloud: {_short(str(error))}; {_SIGN_IN}") from error
    if not hasattr(credentials, "with_always_use_jwt_access"):  # those need no token of a server
        with suppress(GoogleAuthError):  # the calls will say what is wrong
            credentials.refresh(Request())
    return credentials


_KINDS = {
    "RESOURCE_EXHAUSTED": FailureKind.QUOTA,
    "DEADLINE_EXCEEDED": FailureKind.TIMEOUT,
    "PERMISSION_DENIED": FailureKind.PERMISSION,
    "UNAUTHENTICATED": FailureKind.PERMISSION,
    "NOT_FOUND": FailureKind.NOT_FOUND,
    "INVALID_ARGUMENT": FailureKind.INVALID,
    "FAILED_PRECONDITION": FailureKind.INVALID,
    "OUT_OF_RANGE": FailureKind.INVALID,
    "UNIMPLEMENTED": FailureKind.INVALID,
    "ALREADY_EXISTS": FailureKind.INVALID,
}
"""By the name of the gRPC status. All others may pass: the service, or the way to it, is unavailable."""

_HTTP_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    504: "DEADLINE_EXCEEDED",
}


def translated(error: Exception) -> CallError:
    """What Google's libraries raised, as a `CallError`.

    Args:
        error: of google.api_core, google.auth or gRPC.
    """
    import grpc
    from google.api_core.exceptions import from_grpc_error
    from google.auth.exceptions import GoogleAuthError

    if isinstance(error, GoogleAuthError):
        return _of_credentials(error)
    if isinstance(error, grpc.RpcError):
        error = from_grpc_error(error)
    status, message = _status(error), str(getattr(error, "message", None) or error)
    kind = _KINDS.get(status, FailureKind.UNAVAILABLE)
    if kind is FailureKind.UNAVAILABLE and _REFUSED_GRANTS.search(message):
        kind = FailureKind.PERMISSION  # gRPC calls it unavailable when the credentials were refused
    hinted = kind in (FailureKind.QUOTA, FailureKind.UNAVAILABLE)
    return CallError(kind, _short(f"{status}: {message}"), retry_after_s=_retry_after_s(error) if hinted else None)


def _of_credentials(error: Any) -> CallError:
    from google.auth.exceptions import TransportError

    passing = isinstance(error, TransportError) or error.retryable
    kind = FailureKind.UNAVAILABLE if passing else FailureKind.PERMISSION
    return CallError(kind, _short(f"credentials: {error}"))


def _status(error: Exception) -> str:
    status = getattr(error, "grpc_status_code", None)
    return status.name if status is not None else _HTTP_STATUS.get(getattr(error, "code", None) or 0, "UNKNOWN")


def _retry_after_s(error: Exception) -> float | None:
    from google.rpc.error_details_pb2 import RetryInfo

    hints = [detail.retry_delay for detail in getattr(error, "details", ()) if isinstance(detail, RetryInfo)]
    return max(0.0, hints[0].seconds + hints[0].nanos / 1e9) if hints else None


def _short(message: str) -> str:
    line = _TOKENS.sub(HIDDEN, " ".join(message.split()))
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + "…"


def requested(make: Callable[[], T]) -> T:
    """A request's message.

    Args:
        make: makes it.

    Raises:
        CallError: a value does not fit, such as a number that is too large, or text that is no Unicode.
    """
    try:
        return make()
    except (ValueError, TypeError) as error:
        raise CallError(FailureKind.INVALID, _short(f"this cannot be asked: {error}")) from error
