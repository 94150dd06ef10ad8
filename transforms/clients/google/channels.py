"""Calls to Google's services over gRPC: credentials, connections with room, and errors in our words.

Whoever uses this makes one attempt a call, through `Channels.attempt`. Google's libraries are imported where they
are used: they take longer to load than all the rest.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.clients.google.addresses import Address, address_of
from rankbeam.transforms.clients.google.errors import T, shortened, translated
from rankbeam.transforms.records.errors import CallError, InputError
from rankbeam.transforms.records.failures import FailureKind

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
_SIGN_IN = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file"


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
        raise InputError(f"no credentials for Google Cloud: {shortened(str(error))}; {_SIGN_IN}") from error
    if not hasattr(credentials, "with_always_use_jwt_access"):  # those need no token of a server
        with suppress(GoogleAuthError):  # the calls will say what is wrong
            credentials.refresh(Request())
    return credentials
