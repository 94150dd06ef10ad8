"""A gRPC server in this process that answers one method as a test scripts it, down to the bytes.

For answers that `support.standins` does not give: missing fields, several pages, each status there is.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status


@dataclass
class Refusal(Exception):
    """Raised by a script: the call fails.

    Attributes:
        code: the status.
        message: message of the status.
        retry_after_s: put into RetryInfo, where given.
    """

    code: grpc.StatusCode
    message: str = "no"
    retry_after_s: float | None = None

    def metadata(self) -> tuple[tuple[str, bytes], ...]:
        """The metadata that accompanies the status."""
        if self.retry_after_s is None:
            return ()
        delay, detail = Duration(), AnyMessage()
        delay.FromNanoseconds(int(self.retry_after_s * 1e9))
        detail.Pack(RetryInfo(retry_delay=delay))
        status = Status(code=self.code.value[0], message=self.message, details=[detail])
        return (("grpc-status-details-bin", status.SerializeToString()),)


@dataclass
class Script:
    """The answers to give, and the requests received.

    Attributes:
        answer: from a request's bytes to an answer's; raises `Refusal`.
        address: host and port.
        requests: those that came.
        metadata: metadata of each request.
        left_s: for each request, the seconds left until its deadline.
    """

    answer: Callable[[bytes], bytes]
    address: str = ""
    requests: list[bytes] = field(default_factory=list)
    metadata: list[dict[str, Any]] = field(default_factory=list)
    left_s: list[float] = field(default_factory=list)

    async def handle(self, request: bytes, context: Any) -> bytes:
        """Answer one request."""
        self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        self.left_s.append(context.time_remaining())
        try:
            return self.answer(request)
        except Refusal as refusal:
            return await context.abort(refusal.code, refusal.message, refusal.metadata())


@asynccontextmanager
async def scripted(method: str, answer: Callable[[bytes], bytes]) -> AsyncIterator[Script]:
    """A server with one method, on a free port of this machine.

    Args:
        method: such as "/package.Service/Method".
        answer: see `Script`.
    """
    script = Script(answer)
    _, service, name = method.split("/")
    handler = grpc.unary_unary_rpc_method_handler(script.handle)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {name: handler}),))
    script.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    try:
        yield script
    finally:
        await server.stop(None)
