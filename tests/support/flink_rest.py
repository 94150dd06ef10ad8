"""Flink's REST API as far as the status of a job needs it, and the record of a job there."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from apache_beam.metrics import monitoring_infos
from google.protobuf.json_format import MessageToDict

from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.pipelines.portable.job import EngineJob
from rankbeam.transforms.records.counters import NAMESPACE, Counter


@contextmanager
def serving(replies: dict[str, Any]) -> Iterator[str]:
    """The address of a server that answers GET requests by their path, without the query."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(replies.get(self.path.partition("?")[0], {})).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def flink(state: str, problem: str = "") -> dict[str, Any]:
    """The replies of a Flink that ran one job, which scored 640 queries, and may have ended with an error."""
    info = monitoring_infos.int64_user_counter(NAMESPACE, Counter.QUERIES_SCORED, 640, ptransform="Score")
    metrics = {"metrics": {"attempted": [MessageToDict(info)]}}
    accumulators = [{"type": "MetricsAccumulator", "value": json.dumps(metrics)}]
    return {
        "/jobs/overview": {"jobs": [{"jid": "f1", "name": "rankbeam-e", "start-time": 1}]},
        "/jobs/f1": {"state": "RUNNING", "vertices": []},  # as of three seconds ago
        "/jobs/f1/status": {"status": state},
        "/jobs/f1/accumulators": {"user-task-accumulators": accumulators},
        "/jobs/f1/exceptions": {"exceptionHistory": {"entries": [{"stacktrace": problem}] if problem else []}},
    }


def job(folder: Path, address: str, run: RunRecord | None = None) -> EngineJob:
    """The record of a job on that Flink, whose submitting process has ended."""
    at = ("2026-01-02T03:04:05+00:00", "e", str(folder), None, "2026-01-02T03:04:06.000+00:00", None, address)
    return EngineJob("FlinkRunner", "j1", "rankbeam-e", "r1", *at, "EXTERNAL", "elsewhere", 1, "1", run=run)
