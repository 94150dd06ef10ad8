"""JSON services whose every answer is up to the test."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Respond = Callable[[str], tuple[int, bytes]]
"""The status and the body that answer a query."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 256  # 5 by default: a busy machine loses connections that more calls than that open at once


@contextmanager
def serving(respond: Callable[[str, Any], tuple[int, bytes]]) -> Iterator[str]:
    """Serve as long as the block lasts, by the path and the body of a request; yields the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status, body = respond(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with _Server(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def responding(respond: Respond) -> Iterator[tuple[str, list[str]]]:
    """Serve as long as the block lasts; yields the URL, and a list that grows by every query that is asked."""
    log: list[str] = []

    def answer(_: str, body: Any) -> tuple[int, bytes]:
        log.append(body["query"])
        return respond(body["query"])

    with serving(answer) as address:
        yield f"{address}/search", log
