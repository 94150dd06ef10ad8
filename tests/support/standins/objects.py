"""Cloud Storage in memory, beside a service that reads from it: uploads, downloads, lists and deletions.

The emulator from PyPI writes the list of all objects anew for each upload: thousands of them take a quarter of an hour.
It also gives tokens, which Google's clients want before their first request.
"""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c

SCHEME = "gs://"
TOKEN = {"access_token": "nobody-checks-this", "token_type": "Bearer", "expires_in": 3600}


class Objects:
    """The objects of all buckets, by URI.

    Args:
        buckets: names of the buckets that exist and can be written to.
        granted: after so many uploads, more are forbidden; None where they never are.
    """

    def __init__(self, buckets: tuple[str, ...], granted: int | None = None) -> None:
        self.buckets = buckets
        self.granted = granted
        self.uploads = 0
        self.deleted: list[str] = []
        self._held: dict[str, str] = {}
        self._lock = threading.Lock()

    def put(self, uri: str, text: str) -> None:
        """Write an object."""
        with self._lock:
            self._held[uri] = text
            self.uploads += 1

    def below(self, uri: str) -> dict[str, str]:
        """An object, or all below a folder, by URI."""
        with self._lock:
            if uri in self._held:
                return {uri: self._held[uri]}
            return {name: text for name, text in self._held.items() if name.startswith(f"{uri}/")}

    def beginning(self, prefix: str) -> list[str]:
        """The URIs that begin with something."""
        with self._lock:
            return sorted(name for name in self._held if name.startswith(prefix))

    def get(self, uri: str) -> str | None:
        """An object; None if it does not exist."""
        with self._lock:
            return self._held.get(uri)

    def delete(self, uri: str) -> bool:
        """Delete an object; returns whether there was one."""
        with self._lock:
            self.deleted.append(uri)
            return self._held.pop(uri, None) is not None


def serve(objects: Objects) -> int:
    """Serve objects over HTTP on a free port, and return it."""
    handler = type("Handler", (_Handler,), {"objects": objects})
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def _sizes(text: str) -> dict[str, str]:
    """Size and checksum of an object, as lists have them."""
    content = text.encode(errors="surrogateescape")
    digest = base64.b64encode(google_crc32c.Checksum(content).digest()).decode()
    return {"size": str(len(content)), "crc32c": digest}


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that are killed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    objects: Objects

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/token"):
            return self._say(200, json.dumps(TOKEN).encode())
        if self._bucket() not in self.objects.buckets:
            return self._say(404, b"{}")
        if self.objects.granted is not None and self.objects.uploads >= self.objects.granted:
            return self._say(403, b"{}")
        boundary = self.headers["Content-Type"].partition("boundary=")[2].strip('"').encode()
        parts = body.split(b"--" + boundary)
        if len(parts) != len(("", "about", "media", "")):  # of a client that was killed meanwhile
            return self._say(400, b"{}")
        about, media = parts[1:3]
        name = json.loads(about.split(b"\r\n\r\n", 1)[1])["name"]
        self.objects.put(
            f"{SCHEME}{self._bucket()}/{name}",
            media.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n").decode(errors="surrogateescape"),
        )
        return self._say(200, json.dumps({"name": name}).encode())

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if self._bucket() not in self.objects.buckets:
            return self._say(404, b"{}")
        root = f"{SCHEME}{self._bucket()}/"
        if place.path.endswith("/o"):
            names = self.objects.beginning(root + parse_qs(place.query).get("prefix", [""])[0])
            items = [{"name": name.removeprefix(root), **_sizes(self.objects.get(name) or "")} for name in names]
            return self._say(200, json.dumps({"items": items}).encode())
        text = self.objects.get(root + self._name())
        return self._say(404, b"{}") if text is None else self._say(200, text.encode(errors="surrogateescape"))

    def do_DELETE(self) -> None:
        self._say(204 if self.objects.delete(f"{SCHEME}{self._bucket()}/{self._name()}") else 404, b"")

    def _bucket(self) -> str:
        return urlsplit(self.path).path.partition("/b/")[2].partition("/")[0]

    def _name(self) -> str:
        return unquote(urlsplit(self.path).path.partition("/o/")[2])

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)
