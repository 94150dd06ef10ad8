"""Cloud Storage as far as a lease needs it, with generation preconditions: the emulator from PyPI ignores those.

Small objects over JSON and HTTP: multipart upload, download and deletion, each with `ifGenerationMatch`. The same tests
pass on fake-gcs-server, whose address `RANKBEAM_FAKE_GCS` may name (`fake-gcs-server -scheme http -backend memory`).
"""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from google.auth.credentials import AnonymousCredentials
from google.cloud import storage


class _Objects(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects: dict[str, tuple[int, bytes]]
    lock: threading.Lock
    generations: Iterator[int]

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        boundary = self.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
        _, about, media, _ = body.split(b"--" + boundary)
        name = json.loads(about.split(b"\r\n\r\n", 1)[1])["name"]
        with self.lock:
            if not self._is_expected(name):
                return
            generation = next(self.generations)
            self.objects[name] = (generation, media.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n"))
        self._say(200, json.dumps({"name": name, "generation": str(generation)}).encode())

    def do_GET(self) -> None:
        with self.lock:
            content = self.objects.get(self._name())
        if content is None:
            return self._say(404, b"{}")
        return self._say(200, content[1], content[0])

    def do_DELETE(self) -> None:
        with self.lock:
            if self._name() not in self.objects:
                return self._say(404, b"{}")
            if not self._is_expected(self._name()):
                return None
            del self.objects[self._name()]
        return self._say(204, b"")

    def _name(self) -> str:
        return unquote(urlsplit(self.path).path.partition("/o/")[2])

    def _is_expected(self, name: str) -> bool:
        expected = parse_qs(urlsplit(self.path).query).get("ifGenerationMatch", [None])[0]
        if expected is None or int(expected) == self.objects.get(name, (0, b""))[0]:
            return True
        self._say(412, json.dumps({"error": {"code": 412, "message": "conditionNotMet"}}).encode())
        return False

    def _say(self, status: int, body: bytes, generation: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if generation is not None:
            self.send_header("X-Goog-Generation", str(generation))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve() -> Iterator[Any]:
    """Yield a factory of clients of a server with a bucket "bucket", for as long as the block lasts."""
    if address := os.environ.get("RANKBEAM_FAKE_GCS"):
        connect = _connecting(address)
        if connect().lookup_bucket("bucket") is None:
            connect().create_bucket("bucket")
        yield connect
        return
    handler = type("Objects", (_Objects,), {"objects": {}, "lock": threading.RLock(), "generations": count(1)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield _connecting(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


def _connecting(address: str) -> Any:
    def connect() -> storage.Client:
        return storage.Client("p", AnonymousCredentials(), client_options={"api_endpoint": address})

    return connect
