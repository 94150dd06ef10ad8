"""Small servers that misbehave, one way each, and calls of the `http` retriever to them."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from rankbeam.transforms.clients.retrievers.base import payload_of
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import CallError

SECRET = "hidden-Zürich/7&+"  # noqa: S105  a made-up one, with all that URLs and JSON spell in another way
PATHS = {"results": "hits", "id": "id", "score": "score", "text": "text"}
GOOD = {"hits": [{"id": "d1", "score": 2.5, "text": "one"}, {"id": 17}]}


@dataclass(frozen=True)
class Seen:
    """One request, as a server sees it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """A server that answers each connection with the same bytes, and what it was asked."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0


Behaviour = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


def whole(content: bytes, status: str = "200 OK", *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers, "", ""]).encode() + content


def saying(answer: bytes | object, status: str = "200 OK", *headers: str) -> Behaviour:
    content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    async def behave(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(whole(content, status, *headers))

    return behave


async def cut(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(whole(json.dumps(GOOD).encode())[:-10])
    writer.close()


async def reset(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def hang(_: Seen, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while not writer.is_closing():  # a byte now and then, so that no single wait is long
        writer.write(b" ")
        await asyncio.sleep(0.02)


@asynccontextmanager
async def served(behave: Behaviour):
    server = Server()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.strip().split("\r\n")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                seen = Seen(*first.split(" ")[:2], headers, body)
                server.seen.append(seen)
                await behave(seen, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()


def http(**parameters: object) -> Http:
    return Http.model_validate({"url": "http://none.invalid/search", **PATHS, **parameters})


def ask(behave: Behaviour, text: str = "who?", timeout_s: float = 20.0, **parameters: object) -> tuple[str, Seen]:
    """The answer to one call, which can be read, and the request that was made."""

    async def run() -> tuple[str, Seen]:
        async with served(behave) as server:
            service = http(api_endpoint=server.url, **parameters)
            connection = await service.connect()
            try:
                answer = (await connection.call(payload_of(text, SearchDepth(10)), timeout_s, 1)).answer
                service.read(answer)
                return answer, server.seen[0]
            finally:
                await connection.close()

    return asyncio.run(run())


def failure(behave: Behaviour, **parameters: object) -> CallError:
    with pytest.raises(CallError) as caught:
        ask(behave, **parameters)
    return caught.value
