"""Calls to Google's services over gRPC: addresses, credentials, a pool of connections, and translated errors.

`Channels.attempt` makes one attempt of a call; retries are up to the caller. Google's libraries are imported where they
are used, because they take longer to load than everything else.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

from pydantic import AfterValidator

from rankbeam.transforms.clients.google.errors import T, build_request, call_error, short_message
from rankbeam.transforms.clients.storage.remedies import reason
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError

_ENDPOINT = re.compile(r"(?:(?P<scheme>https?)://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?/?")
_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")
_LOOPBACK = {"localhost", "127.0.0.1", "[::1]"}
_PROBE_TIMEOUT_S = 2.0


def _checked_endpoint(value: str) -> str:
    match = _ENDPOINT.fullmatch(value)
    if match is None or int(match["port"] or 0) > 65_535:
        raise ValueError("is not an address; give host or host:port, or http://host:port for a server without TLS")
    return value


Endpoint = Annotated[str, AfterValidator(_checked_endpoint)]
"""The address of a service: `host`, `host:port`, `https://host:port`, or `http://host:port` without TLS.

Credentials go only to servers with TLS. For a server on this machine, such as an emulator, the scheme may be omitted:
a connection attempt shows whether the server uses TLS.
"""


@dataclass(frozen=True)
class Address:
    """The address of a service."""

    target: str
    secure: bool


async def address_of(endpoint: str) -> Address:
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None:
        raise InputError(f"{endpoint!r} is not an address; give host or host:port")
    scheme, host, port = match["scheme"], match["host"], match["port"]
    secure = scheme != "http"
    if scheme is None and port is not None and host in _LOOPBACK:
        secure = await asyncio.to_thread(_speaks_tls, host.strip("[]"), int(port))
    return Address(f"{host}:{port or (443 if secure else 80)}", secure)


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # gRPC verifies; nothing is sent here
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection((host, port), _PROBE_TIMEOUT_S) as plain, context.wrap_socket(plain):
            return True
    except OSError:  # ssl's errors are OSErrors too
        return False


CALLS_PER_CONNECTION = 90
"""Servers commonly refuse more than 100 streams; the client would queue a further call after it was paced. A cancelled
call may still count at the server, so the limit leaves a margin."""
_CALLS_BEFORE_ANOTHER = 60
_CONNECT_S = 5.0

_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),  # otherwise all channels share one connection
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.keepalive_time_ms", 300_000),  # servers may close connections that are pinged more often
    ("grpc.keepalive_timeout_ms", 20_000),  # also how long sent data may stay unacknowledged before a reconnect
    ("grpc.initial_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 5_000),  # calls fail at once during the backoff: by default up to two minutes
)
CREDENTIALS = "the credentials of gcloud (application default), and their roles in the project"
_SIGN_IN = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file"


@dataclass
class _Connection:
    client: Any
    calls: int = 0


class Channels:
    """Clients of one service with one connection each; a new one opens when all open connections are at their limit."""

    def __init__(self, address: Address, credentials: Any, client: Any, transport: Any) -> None:
        """Create without a connection; `connect` opens the first."""
        self._address, self._credentials = address, credentials
        self._client, self._transport = client, transport
        self._connections: list[_Connection] = []

    async def connect(self) -> None:
        """Open the first connection. If that takes too long, calls start anyway, and their errors say why.

        Without the wait, calls would queue in the client and then reach the service in a burst.
        """
        connection = self._new_connection()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CONNECT_S):
                await connection.client.transport.grpc_channel.channel_ready()

    async def attempt(self, request: Callable[[Any], Awaitable[T | None]]) -> T:
        """Make one attempt, on a connection below its limit."""
        import grpc
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError

        with self._client_for_call() as client:
            try:
                answer = await request(client)
            except (GoogleAPIError, GoogleAuthError, grpc.RpcError) as error:
                raise call_error(error) from error
        if answer is None:  # gRPC returns None for bytes that are not a message
            raise CallError(FailureKind.MALFORMED, "the answer cannot be decoded")
        return answer

    async def call(self, method: str, make: Callable[[], Any], timeout_s: float) -> Any:
        """Make one attempt at a request, whose message `make` builds."""
        message = build_request(make)
        return await self.attempt(lambda client: getattr(client, method)(message, retry=None, timeout=timeout_s))

    async def close(self) -> None:
        while self._connections:
            await self._connections.pop().client.transport.close()

    @contextmanager
    def _client_for_call(self) -> Iterator[Any]:
        free = (connection for connection in self._connections if connection.calls < CALLS_PER_CONNECTION)
        connection = next(free, None) or self._new_connection()
        connection.calls += 1
        if all(other.calls >= _CALLS_BEFORE_ANOTHER for other in self._connections):
            self._new_connection()  # so that it is open when it is needed
        try:
            yield connection.client
        finally:
            connection.calls -= 1

    def _new_connection(self) -> _Connection:
        connection = _Connection(self._open_client())
        connection.client.transport.grpc_channel.get_state(try_to_connect=True)
        self._connections.append(connection)
        return connection

    def _open_client(self) -> Any:
        import grpc.aio

        if not self._address.secure:
            channel = grpc.aio.insecure_channel(self._address.target, options=_OPTIONS)
            return self._client(transport=self._transport(channel=channel))
        return self._client(
            transport=self._transport(
                host=self._address.target,
                credentials=self._credentials,
                channel=lambda target, **settings: self._transport.create_channel(
                    target, **{**settings, "options": _OPTIONS}
                ),
                always_use_jwt_access=True,  # as the client's default: service accounts need no token server
            )
        )


@dataclass(frozen=True)
class ChannelConnection:
    """Base of the connections of a service over gRPC."""

    channels: Channels

    async def close(self) -> None:
        await self.channels.close()


async def open_channels(endpoint: str, package: str, service: str) -> Channels:
    """Channels to an `Endpoint` of a service in a package of Google's, with the credentials of the environment."""
    # In threads: importing takes seconds, and so does the metadata server. Other calls go on meanwhile.
    client, transport = await asyncio.to_thread(_import_client, package, service)
    address = await address_of(endpoint)
    credentials = await asyncio.to_thread(default_credentials, transport.AUTH_SCOPES) if address.secure else None
    channels = Channels(address, credentials, client, transport)
    await channels.connect()
    return channels


def _import_client(package: str, service: str) -> tuple[Any, Any]:
    """The client and the transport of a service, such as "SearchService"."""
    module = f"{package}.services.{_WORD_START.sub('_', service).lower()}"
    client = getattr(import_module(module), f"{service}AsyncClient")
    return client, getattr(import_module(f"{module}.transports"), f"{service}GrpcAsyncIOTransport")


def default_credentials(scopes: tuple[str, ...]) -> Any:
    """The credentials of the environment, refreshed where a server gives their token."""
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
    from google.auth.transport.requests import Request

    try:
        credentials = google.auth.default(default_scopes=scopes)[0]
    except (DefaultCredentialsError, OSError) as error:
        raise InputError(f"no credentials for Google Cloud: {short_message(reason(error))}; {_SIGN_IN}") from error
    if not hasattr(credentials, "with_always_use_jwt_access"):  # credentials that have it need no token server
        with suppress(GoogleAuthError):  # the calls will fail with the reason
            credentials.refresh(Request())
    return credentials
