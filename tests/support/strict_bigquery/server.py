"""The HTTP side: which request asks for what."""

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.strict_bigquery import faults
from support.strict_bigquery.faults import Fault, Refusal
from support.strict_bigquery.jobs import Job, Warehouse
from support.strict_bigquery.tables import Row, new_table

PROJECT = "test-project"
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
BASE = r"(?:/upload|/resumable/upload)?/bigquery/v2/projects/([^/]+)"
ROUTES = {
    ("GET", "datasets.get"): re.compile(rf"{BASE}/datasets/([^/]+)"),
    ("PATCH", "datasets.patch"): re.compile(rf"{BASE}/datasets/([^/]+)"),
    ("POST", "tables.insert"): re.compile(rf"{BASE}/datasets/([^/]+)/tables"),
    ("GET", "tables.get"): re.compile(rf"{BASE}/datasets/([^/]+)/tables/([^/]+)"),
    ("PATCH", "tables.patch"): re.compile(rf"{BASE}/datasets/([^/]+)/tables/([^/]+)"),
    ("DELETE", "tables.delete"): re.compile(rf"{BASE}/datasets/([^/]+)/tables/([^/]+)"),
    ("POST", "jobs.insert"): re.compile(rf"{BASE}/jobs"),
    ("PUT", "upload"): re.compile(rf"{BASE}/jobs"),
    ("GET", "jobs.get"): re.compile(rf"{BASE}/jobs/([^/]+)"),
    ("POST", "jobs.query"): re.compile(rf"{BASE}/queries"),
}


class StrictBigQuery(Warehouse):
    """A server that runs.

    Attributes:
        url: its address.
        request_log: the method of the interface and the path of every request.
    """

    def __init__(self, project: str, root: Path | None) -> None:
        super().__init__(project, root)
        self.url = ""
        self.request_log: list[tuple[str, str]] = []
        self.uploads: dict[str, tuple[dict[str, Any], bytearray]] = {}

    def dataset(self, name: str, location: str = "europe-west1") -> str:
        """Make a dataset; returns its full name."""
        self.datasets[name] = location
        return f"{self.project}.{name}"

    def rows(self, table: str, dataset: str = "warehouse") -> list[Row]:
        """The rows that readers see now."""
        with self.lock:
            return list(self.tables[dataset, table].rows) if (dataset, table) in self.tables else []

    def seen(self, run_id: str, dataset: str = "warehouse") -> dict[str, set[Any]]:
        """The start of a run that readers see at one moment, by table that has rows of it."""
        with self.lock:
            rows = {
                name: {row["started_at"] for row in table.rows if row["run_id"] == run_id}
                for (where, name), table in self.tables.items()
                if where == dataset and not name.startswith("_")
            }
        return {name: begun for name, begun in rows.items() if begun}

    def names(self, dataset: str = "warehouse") -> set[str]:
        """The tables of a dataset."""
        return {table for where, table in self.tables if where == dataset}

    def began(self, text: str) -> list[Job]:
        """The jobs in whose id a text stands, in the order of their beginning."""
        return [job for (_, job_id), job in self.jobs.items() if text in job_id]

    def methods(self) -> list[str]:
        """The methods that were asked for."""
        return [method for method, _ in self.request_log]


@contextmanager
def serve(project: str = PROJECT, root: Path | None = None) -> Iterator[StrictBigQuery]:
    """A server, for as long as the block lasts.

    Args:
        project: the only one there is.
        root: the folder behind `gs://`.
    """
    bigquery = StrictBigQuery(project, root)
    handler = type("BoundHandler", (Handler,), {"bigquery": bigquery})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    bigquery.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield bigquery
    finally:
        server.shutdown()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # an answer in one piece: otherwise the client waits 40 ms for the second
    bigquery: StrictBigQuery

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PATCH = do_DELETE = do_PUT = do_GET  # noqa: N815  their names are Python's

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        address = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(address.query).items()}
        routes = [(name, match) for (verb, name), route in ROUTES.items()
                  if verb == self.command and (match := route.fullmatch(address.path))]  # fmt: skip
        if not routes:
            return self._say(404, Refusal("notFound", f"no such method: {self.command} {address.path}").body())
        name, match = routes[0]
        self.bigquery.request_log.append((name, address.path))
        fault = faults.take(self.bigquery.faults, name, f"{self.path} {body.decode(errors='replace')}")
        try:
            status, answer = self._answer(name, match.groups(), body, fault)
        except Refusal as refusal:
            status, answer = refusal.status, refusal.body()
        if fault is not None and fault.what in ("drop", "lost"):
            self.close_connection = True
            return None
        return self._say(status, answer)

    def _answer(
        self, name: str, groups: tuple[str, ...], body: bytes, fault: Fault | None
    ) -> tuple[int, dict[str, Any]]:
        if fault is not None and fault.what in faults.STATUSES:
            raise fault.refusal()
        if fault is not None and fault.what == "drop":
            return 0, {}
        if groups[0] != self.bigquery.project:
            raise Refusal("notFound", f"Not found: Project {groups[0]}")
        method: Callable[..., tuple[int, dict[str, Any]]] = getattr(self, f"_{name.replace('.', '_')}")
        return method(*groups[1:], body=body)

    def _say(self, status: int, answer: dict[str, Any]) -> None:
        content = b"" if status == 204 else json.dumps(answer).encode()
        self.send_response(status)
        for key, value in answer.get("headers", {}).items() if "headers" in answer else ():
            self.send_header(key, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _datasets_get(self, dataset: str, *, body: bytes) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        reference = {"projectId": self.bigquery.project, "datasetId": dataset}
        answer = {"datasetReference": reference, "location": self.bigquery.place(dataset)}
        return 200, answer | self.bigquery.defaults.get(dataset, {})

    def _datasets_patch(self, dataset: str, *, body: bytes) -> tuple[int, dict[str, Any]]:
        changes = json.loads(body)
        if changes.keys() != {"defaultPartitionExpirationMs"}:
            raise Refusal("invalid", f"A change that nobody here makes: {changes}")
        self.bigquery.defaults[dataset] = changes
        return self._datasets_get(dataset, body=b"")

    def _tables_get(self, dataset: str, table: str, *, body: bytes) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        return 200, self.bigquery.table(dataset, table).shown()

    def _tables_insert(self, dataset: str, *, body: bytes) -> tuple[int, dict[str, Any]]:
        resource = json.loads(body)
        name = resource["tableReference"]["tableId"]
        with self.bigquery.lock:
            there = self.bigquery.tables.get((dataset, name))
            if there is not None and not there.has_expired:
                raise Refusal("duplicate", f"Already Exists: Table {self.bigquery.project}:{dataset}.{name}")
            inherited = self.bigquery.defaults.get(dataset, {}).get("defaultPartitionExpirationMs")
            if inherited is not None and "timePartitioning" in resource:
                resource["timePartitioning"].setdefault("expirationMs", inherited)
            created = self.bigquery.tables[dataset, name] = new_table(resource, self.bigquery.place(dataset))
        return 200, created.shown()

    def _tables_patch(self, dataset: str, table: str, *, body: bytes) -> tuple[int, dict[str, Any]]:
        with self.bigquery.lock:
            existing = self.bigquery.table(dataset, table)
            existing.patch(json.loads(body), self.headers.get("If-Match"))
            return 200, existing.shown()

    def _tables_delete(self, dataset: str, table: str, *, body: bytes) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        with self.bigquery.lock:
            self.bigquery.table(dataset, table)
            del self.bigquery.tables[dataset, table]
        return 204, {}

    def _jobs_insert(self, *, body: bytes) -> tuple[int, dict[str, Any]]:
        kind = self.query.get("uploadType")
        if kind is None:
            return 200, self.bigquery.begin(json.loads(body), None).shown()
        if kind == "multipart":
            described, content = _parts(self.headers["Content-Type"], body)
            return 200, self.bigquery.begin(described, content).shown()
        upload = uuid.uuid4().hex
        self.bigquery.uploads[upload] = (json.loads(body), bytearray())
        return 200, {"headers": {"Location": f"{self.bigquery.url}{self.path}&upload_id={upload}"}}

    def _upload(self, *, body: bytes) -> tuple[int, dict[str, Any]]:
        """A piece of a file; the job begins after the last one."""
        described, received = self.bigquery.uploads[self.query["upload_id"]]
        place, _, total = self.headers["Content-Range"].removeprefix("bytes ").partition("/")
        if int(place.partition("-")[0]) != len(received):
            raise Refusal("invalid", f"{len(received)} bytes were received, and {place} came")
        received += body
        if total == "*":
            return 308, {"headers": {"Range": f"bytes=0-{len(received) - 1}"}}
        return 200, self.bigquery.begin(described, bytes(received)).shown()

    def _jobs_get(self, job_id: str, *, body: bytes) -> tuple[int, dict[str, Any]]:  # noqa: ARG002
        return 200, self._job(job_id, self.query.get("location", "US")).shown()

    def _jobs_query(self, *, body: bytes) -> tuple[int, dict[str, Any]]:
        """A query that changes nothing, answered at once."""
        request = json.loads(body)
        place = request.get("location", "US")
        reference = {"projectId": self.bigquery.project, "location": place, "jobId": uuid.uuid4().hex}
        script, query = self.bigquery.script(request, place), request["query"]
        types = {"experiment": "STRING"}
        if (owner := script.owner(query)) is not None:
            rows = [{"f": [{"v": name}]} for name in owner]
        else:
            result = script.look(query)
            rows = [{"f": [{"v": name}, {"v": str((began - EPOCH) // MICROSECOND)}]} for name, began in result]
            types = {"name": "STRING", "began": "TIMESTAMP"}
        schema = {"fields": [{"name": name, "type": kind, "mode": "NULLABLE"} for name, kind in types.items()]}
        answer = {"jobReference": reference, "schema": schema, "rows": rows, "totalRows": str(len(rows))}
        return 200, {**answer, "jobComplete": True}

    def _job(self, job_id: str, place: str) -> Job:
        if (place, job_id) not in self.bigquery.jobs:
            raise Refusal("notFound", f"Not found: Job {self.bigquery.project}:{place}.{job_id}")
        return self.bigquery.jobs[place, job_id]


def _parts(content_type: str, body: bytes) -> tuple[dict[str, Any], bytes]:
    """The two parts of an upload: what it is, and its content."""
    boundary = re.search(r'boundary="?([^";]+)', content_type)
    assert boundary is not None
    _, first, second, _ = body.split(f"--{boundary[1]}".encode())
    described, content = (part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") for part in (first, second))
    return json.loads(described), content
