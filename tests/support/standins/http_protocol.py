"""One connection of an HTTP/1.1 server, by hand: it has to break the protocol in ways that no library would."""

import asyncio
import base64
import json
import math
import re
import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.standins.reception import OVER_QUOTA, Reception, Visit

STATUSES = {
    "quota": 429,
    "quota_hint": 429,
    OVER_QUOTA: 429,
    "unavailable": 503,
    "internal": 500,
    "timeout": 504,
    "request_timeout": 408,
    "conflict": 409,
    "too_early": 425,
    "permission": 403,
    "not_found": 404,
    "invalid": 400,
}
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_SCRIPTED = re.compile(r"reply=(\d{3}):([\w=-]*):([\w=-]*)")


def scripted(body: bytes, status: int = 200, headers: str = "") -> str:
    """The text of a question to which a stand-in sends exactly this reply."""
    parts = (base64.urlsafe_b64encode(part).decode() for part in (body, headers.encode()))
    return f"reply={status}:{':'.join(parts)}"


@dataclass(frozen=True)
class Request:
    """A request as it came.

    Attributes:
        method: HTTP method.
        target: path and query string.
        headers: with names in lower case.
        body: content of the request.
    """

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    def shown(self, query: str) -> dict[str, Any]:
        """The request as JSON."""
        return {
            "query": query,
            "method": self.method,
            "target": self.target,
            "headers": self.headers,
            "body": self.body.decode(errors="replace"),
        }


class HttpConnection(asyncio.Protocol):
    """One connection; requests on it are answered one after the other. Subclasses say what is served."""

    def __init__(self, reception: Reception) -> None:
        self.reception = reception
        self._received = b""
        self._at_work: asyncio.Task[None] | None = None

    def parsed(self, request: Request) -> tuple[str, Any]:
        """Return the text that names a request in the figures, and the values that `answer` needs.

        Raises:
            LookupError: nothing is served there.
            ValueError: it cannot be understood.
        """
        raise NotImplementedError

    def answer(self, visit: Visit, body: Any) -> None:
        """Answer with `say`, or go wrong as the visit's fault says."""
        raise NotImplementedError

    def error(self, status: int, message: str) -> bytes:
        """The body of a refusal."""
        return json.dumps({"error": message, "status": status}).encode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back to the client."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._name = str(transport.get_extra_info("peername"))

    def data_received(self, data: bytes) -> None:
        """Take what came, and begin to answer when a request is complete."""
        self._received += data
        self._next()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        """Stop working on an answer that cannot be sent."""
        if self._at_work is not None:
            self._at_work.cancel()

    def refuse(self, visit: Visit) -> None:
        """Refuse a visit with the status of its fault."""
        fault = str(visit.fault)
        wait_s = {"quota_hint": visit.hint_s, OVER_QUOTA: math.ceil(visit.hint_s)}.get(fault)
        headers = "" if wait_s is None else f"Retry-After: {wait_s:g}\r\n"
        self.say(STATUSES[fault], self.error(STATUSES[fault], f"{fault}: as the script says"), headers)

    def say(self, status: int, body: bytes, headers: str = "", length: int | None = None) -> None:
        """Send an answer.

        Args:
            status: HTTP status.
            body: content of the response.
            headers: further ones, each with its line end; a Content-Type replaces that of JSON.
            length: the promised length; None for the true one.
        """
        kind = "" if "Content-Type" in headers else "Content-Type: application/json\r\n"
        size = len(body) if length is None else length
        head = f"HTTP/1.1 {status} -\r\n{kind}Content-Length: {size}\r\n{headers}\r\n"
        self.transport.write(head.encode() + body)

    def cut(self, body: bytes) -> None:
        """Send half of a body, and close the connection."""
        self.say(200, body[: len(body) // 2], length=len(body))
        self.transport.close()

    def reset(self) -> None:
        """Break the connection off."""
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.transport.abort()

    def say_spoilt(self, body: bytes, fault: str | None) -> None:
        """Answer with status 200 and a body, or with a damaged body as a fault demands."""
        if fault == "malformed":
            self.say(200, body[:-3])
        elif fault == "partial":
            self.cut(body)
        else:
            self.reception.answered += 1
            self.say(200, body)

    def say_scripted(self, question: str) -> bool:
        """Send the reply that a question scripts, if it does; see `scripted`."""
        script = _SCRIPTED.search(question)
        if script is None:
            return False
        body, headers = (base64.urlsafe_b64decode(part) for part in script.group(2, 3))
        self.say(int(script[1]), body, headers.decode())
        return True

    def _next(self) -> None:
        if self._at_work is not None or (request := self._taken()) is None:
            return
        try:
            name, body = self.parsed(request)
        except LookupError as error:
            status = 404 if not isinstance(error, KeyError) else 400
            self.say(status, self.error(status, str(error)))
        except ValueError as error:
            self.say(400, self.error(400, str(error)))
        else:
            visit = self.reception.enter(name, self._name, lambda: request.shown(name))
            self._at_work = asyncio.get_running_loop().create_task(self._serve(visit, body))

    def _taken(self) -> Request | None:
        """The next request, taken from what was received; None where it is not complete."""
        head, blank, rest = self._received.partition(b"\r\n\r\n")
        if not blank:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return None
        self._received = rest[length:]
        method, target, _ = first.split(" ")
        return Request(method, target, headers, rest[:length])

    async def _serve(self, visit: Visit, body: Any) -> None:
        try:
            if visit.latency_s > 0:
                await asyncio.sleep(visit.latency_s)
            self.answer(visit, body)
        finally:
            self.reception.leave(visit)
            self._at_work = None
        if not self.transport.is_closing():
            self._next()


async def listen(factory: Callable[[], asyncio.Protocol], reception: Reception) -> int:
    """Serve on a free port, or on that of the settings, and return it.

    Args:
        factory: makes a connection.
        reception: reception whose settings decide whether to speak TLS.
    """
    settings, context = reception.settings, None
    if settings.certificate is not None and settings.private_key is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(settings.certificate, settings.private_key)
    server = await asyncio.get_running_loop().create_server(
        factory, "127.0.0.1", settings.port, ssl=context, backlog=1024
    )
    port: int = server.sockets[0].getsockname()[1]
    return port
