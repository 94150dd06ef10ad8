"""gRPC services without generated stubs, that go wrong as they are told to."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from support.standins.reception import OVER_QUOTA, Reception, Visit

Code = grpc.StatusCode
CODES = {
    "quota": Code.RESOURCE_EXHAUSTED,
    "quota_hint": Code.RESOURCE_EXHAUSTED,
    OVER_QUOTA: Code.RESOURCE_EXHAUSTED,
    "unavailable": Code.UNAVAILABLE,
    "internal": Code.INTERNAL,
    "timeout": Code.DEADLINE_EXCEEDED,
    "request_timeout": Code.DEADLINE_EXCEEDED,
    "reset": Code.UNAVAILABLE,
    "partial": Code.DATA_LOSS,
    "permission": Code.PERMISSION_DENIED,
    "not_found": Code.NOT_FOUND,
    "invalid": Code.INVALID_ARGUMENT,
}
STATUSES = {code.value[0]: code for code in Code}
DETAILS = "grpc-status-details-bin"
DESCRIPTORS = Path("/dev/fd")
# gRPC refuses streams by chance when many come at once; here only the script says what goes wrong.
OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.http.overload_protection", 0),
    ("grpc.server.max_pending_requests", 1_000_000),
    ("grpc.server.max_pending_requests_hard_limit", 1_000_000),
)


@dataclass(frozen=True)
class Method:
    """A method of a service.

    Attributes:
        service: full name of the service.
        name: name of the method.
        request: the class of its protobuf messages.
        query: function from a request to its query.
        answer: the response to a request, with a fault in it or None. A ValueError says what is wrong with the request.
        is_counted: whether requests count for the reception's quota and faults.
    """

    service: str
    name: str
    request: Any
    query: Callable[[Any], str]
    answer: Callable[[Any, str | None], Any]
    is_counted: bool = True


class Aborted(Exception):
    """A request that an answer refuses: number of the gRPC status, and why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Calls:
    """Answers calls of one method."""

    reception: Reception
    method: Method

    async def __call__(self, request: Any, context: Any) -> Any:
        """Answer one."""
        if not self.method.is_counted:
            return await self._answer(request, None, context)
        query = self.method.query(request)
        metadata = dict(context.invocation_metadata())  # gRPC frees its own copy when the call ends
        visit = self.reception.enter(query, context.peer(), lambda: _shown(query, metadata, request))
        try:
            if self.reception.settings.certificate is not None and "authorization" not in metadata:
                await context.abort(Code.UNAUTHENTICATED, "there is no access token in the request")
            await asyncio.sleep(visit.latency_s)
            await _spoil(visit, context)
            return await self._answer(request, visit.fault, context)
        finally:
            self.reception.leave(visit)

    async def _answer(self, request: Any, fault: str | None, context: Any) -> Any:
        try:
            response = self.method.answer(request, fault)
        except ValueError as error:
            await context.abort(Code.INVALID_ARGUMENT, str(error))
        except Aborted as error:
            await context.abort(STATUSES[error.code], str(error))
        self.reception.answered += fault != "malformed"
        return response


async def start(reception: Reception, *methods: Method) -> int:
    """Serve methods on a free port, and return it."""
    settings = reception.settings
    options = [*OPTIONS]
    if settings.streams_per_connection is not None:
        options.append(("grpc.max_concurrent_streams", settings.streams_per_connection))
    server = grpc.aio.server(options=options)
    services: dict[str, dict[str, Any]] = {}
    for method in methods:
        services.setdefault(method.service, {})[method.name] = _handler(reception, method)
    server.add_generic_rpc_handlers(
        tuple(grpc.method_handlers_generic_handler(*service) for service in services.items())
    )
    port: int = _listening(server, settings.certificate, settings.private_key)
    await server.start()
    _running.append(server)
    return port


def _handler(reception: Reception, method: Method) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        Calls(reception, method).__call__,
        request_deserializer=method.request.FromString,
        response_serializer=lambda response: response.SerializeToString(),
    )


_running: list[Any] = []  # a server that nobody holds is stopped


def _listening(server: Any, certificate: str | None, private_key: str | None) -> Any:
    if certificate is None or private_key is None:
        return server.add_insecure_port("127.0.0.1:0")
    pair = (Path(private_key).read_bytes(), Path(certificate).read_bytes())
    return server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))


def _shown(query: str, metadata: dict[str, Any], request: Any) -> dict[str, Any]:
    texts = {name: value if isinstance(value, str) else value.hex() for name, value in metadata.items()}
    return {"query": query, "metadata": texts, "message": MessageToDict(request, preserving_proto_field_name=True)}


async def _spoil(visit: Visit, context: Any) -> None:
    """End the call where its fault says so."""
    if visit.fault == "drop_connection":
        _close_connection(context.peer())
        await asyncio.sleep(60)  # until it is cancelled, because its connection is gone
    elif visit.fault in ("quota_hint", OVER_QUOTA):
        status = _with_hint(visit)
        await context.abort(Code.RESOURCE_EXHAUSTED, status.message, ((DETAILS, status.SerializeToString()),))
    elif visit.fault in CODES:
        what = "Connection reset by peer" if visit.fault == "reset" else "as the script says"
        await context.abort(CODES[visit.fault], f"{visit.fault}: {what}")


def _with_hint(visit: Visit) -> Status:
    delay = Duration()
    delay.FromMicroseconds(int(visit.hint_s * 1e6) + 1)
    status = Status(code=Code.RESOURCE_EXHAUSTED.value[0], message=f"{visit.fault}: Quota exceeded")
    status.details.add().Pack(RetryInfo(retry_delay=delay))
    return status


def _close_connection(peer: str) -> None:
    """Close this process's socket that leads to a peer; gRPC itself offers no way to.

    Args:
        peer: such as "ipv4:127.0.0.1:40000".
    """
    port = int(peer.rpartition(":")[2])
    for path in list(DESCRIPTORS.iterdir()):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(path.name))) as connection:
            if connection.getpeername()[1:2] == (port,):
                connection.shutdown(socket.SHUT_RDWR)
