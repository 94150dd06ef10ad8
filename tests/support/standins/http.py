"""A JSON search service over HTTP/1.1, by hand: it has to break the protocol in ways that no library would.

POST /search {"query": "…", "top_k": 10}
GET /search?q=…&k=10
→ {"hits": {"hits": [{"_id": "doc-1", "_score": 0.9, "_source": {"text": "…", "title": "…", "uri": "…"}}]}}
"""

import asyncio
import json
import math
import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.standins.ranking import Rankings, Result, turned_around
from support.standins.reception import OVER_QUOTA, Reception, Visit

DEFAULT_TOP_K = 10
STATUSES = {
    "quota": 429,
    "quota_hint": 429,
    OVER_QUOTA: 429,
    "unavailable": 503,
    "internal": 500,
    "timeout": 504,
    "request_timeout": 408,
    "permission": 403,
    "not_found": 404,
    "invalid": 400,
}
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Request:
    """A request as it came.

    Attributes:
        method: of it.
        target: path and query string.
        headers: with names in lower case.
        body: of it.
    """

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    def asked(self) -> tuple[str, int]:
        """The query and the number of results that are wanted.

        Raises:
            LookupError: nothing is served there.
            ValueError: it says something else.
        """
        address = urlsplit(self.target)
        if address.path != "/search":
            raise LookupError(f"there is nothing at {address.path}")
        if self.method == "GET":
            parameters = parse_qs(address.query)
            return parameters.get("q", [""])[0], int(parameters.get("k", [DEFAULT_TOP_K])[0])
        body = json.loads(self.body)
        return str(body["query"]), int(body.get("top_k", DEFAULT_TOP_K))

    def shown(self, query: str) -> dict[str, Any]:
        """The request as JSON."""
        return {
            "query": query,
            "method": self.method,
            "target": self.target,
            "headers": self.headers,
            "body": self.body.decode(errors="replace"),
        }


class Search(asyncio.Protocol):
    """One connection; requests on it are answered one after the other."""

    def __init__(self, reception: Reception, rankings: Rankings) -> None:
        self._reception = reception
        self._rankings = rankings
        self._received = b""
        self._at_work: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember who is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._name = str(transport.get_extra_info("peername"))

    def data_received(self, data: bytes) -> None:
        """Take what came, and begin to answer when a request is complete."""
        self._received += data
        self._next()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        """Nobody waits for the answer any more."""
        if self._at_work is not None:
            self._at_work.cancel()

    def _next(self) -> None:
        if self._at_work is not None or (request := self._taken()) is None:
            return
        try:
            query, top_k = request.asked()
        except LookupError as error:
            self._say(404 if not isinstance(error, KeyError) else 400, _error(str(error)))
        except ValueError as error:
            self._say(400, _error(str(error)))
        else:
            visit = self._reception.enter(query, self._name, lambda: request.shown(query))
            self._at_work = asyncio.get_running_loop().create_task(self._serve(visit, top_k))

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

    async def _serve(self, visit: Visit, top_k: int) -> None:
        try:
            if visit.latency_s > 0:
                await asyncio.sleep(visit.latency_s)
            self._answer(visit, top_k)
        finally:
            self._reception.leave(visit)
            self._at_work = None
        if not self._transport.is_closing():
            self._next()

    def _answer(self, visit: Visit, top_k: int) -> None:
        if visit.fault in STATUSES:
            self._refuse(visit)
        elif visit.fault in ("reset", "drop_connection"):
            self._reset()
        else:
            self._tell(visit, self._rankings.results(visit.query, 0, top_k))

    def _refuse(self, visit: Visit) -> None:
        wait_s = {"quota_hint": visit.hint_s, OVER_QUOTA: math.ceil(visit.hint_s)}.get(str(visit.fault))
        headers = "" if wait_s is None else f"Retry-After: {wait_s:g}\r\n"
        self._say(STATUSES[str(visit.fault)], _error(f"{visit.fault}: as the script says"), headers)

    def _tell(self, visit: Visit, results: list[Result]) -> None:
        if visit.fault == "malformed":
            self._say(200, _hits(results)[:-3])
        elif visit.fault == "partial":
            body = _hits(results)
            self._say(200, body[: len(body) // 2], length=len(body))
            self._transport.close()
        else:
            self._reception.answered += 1
            self._say(200, _hits(_changed(results, visit.fault)))

    def _say(self, status: int, body: bytes, headers: str = "", length: int | None = None) -> None:
        head = (
            f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body) if length is None else length}\r\n{headers}\r\n"
        )
        self._transport.write(head.encode() + body)

    def _reset(self) -> None:
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self._transport.abort()


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    settings = reception.settings
    rankings = Rankings(settings.answers, settings.documents, distances=False)
    made: Callable[[], Search] = lambda: Search(reception, rankings)  # noqa: E731
    context = None
    if settings.certificate is not None and settings.private_key is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(settings.certificate, settings.private_key)
    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0, ssl=context, backlog=1024)
    port: int = server.sockets[0].getsockname()[1]
    return port


def _changed(results: list[Result], fault: str | None) -> list[Result]:
    if fault == "empty":
        return []
    return turned_around(results) if fault == "wrong_order" else results


def _hits(results: list[Result]) -> bytes:
    hits = [
        {"_id": each.id, "_score": each.score, "_source": {"text": each.text, "title": each.title, "uri": each.uri}}
        for each in results
    ]
    return json.dumps({"hits": {"hits": hits}}).encode()


def _error(message: str) -> bytes:
    return json.dumps({"error": message}).encode()
