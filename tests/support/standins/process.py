"""Starts a stand-in in a process of its own, and asks it what it saw.

The two talk over the child's stdin and stdout, one line of JSON each: settings, the port, and for every empty line the
figures. When stdin ends the child does too, so it does not outlive the tests, even when those are killed.
"""

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from support.processes import Process
from support.standins import certificates
from support.standins.faults import Faults
from support.standins.reception import Settings, Stats

SERVER_MODULES = {
    "rag_engine": "support.standins.rag_engine",
    "rag_corpora": "support.standins.rag_corpora",
    "evaluation": "support.standins.evaluation",
    "vertex_search": "support.standins.vertex_search",
    "search_documents": "support.standins.search_documents",
    "http": "support.standins.http",
    "gemini": "support.standins.gemini",
    "openai": "support.standins.openai",
    "rerankers": "support.standins.rerankers",
    "openai_batches": "support.standins.openai_batches",
    "gemini_batches": "support.standins.gemini_batches",
    "vertex_batches": "support.standins.vertex_batches",
}
DOCUMENTS = tuple(f"doc-{number}" for number in range(1000))
TESTS = Path(__file__).parents[2]
SERVING = "import runpy; runpy.run_module('support.standins', run_name='__main__')"
CLOSING_S = 10.0


@dataclass
class Standin:
    """A stand-in that runs.

    Attributes:
        address: host and port.
        url: the same with its scheme.
        certificate: path of the certificate to trust, in PEM; None without TLS.
        pid: id of its process.
    """

    address: str
    url: str
    certificate: str | None
    pid: int
    _child: Process
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _last: Stats | None = None

    def stats(self) -> Stats:
        """Statistics of its requests so far; after its end, of all requests."""
        with self._lock:
            return self._last or Stats(**_sent(self._child, ""))

    def close(self) -> None:
        """Stop it, and keep its figures."""
        with self._lock:
            if self._child.poll() is None:
                self._last = Stats(**_sent(self._child, ""))
        _stop(self._child)


@contextmanager
def serve(
    kind: str,
    *,
    answers: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    documents: Sequence[str] = DOCUMENTS,
    faults: Faults | None = None,
    latency_s: float | tuple[float, float] = 0.0,
    slow: tuple[float, float] = (0.0, 0.0),
    quota_per_minute: float | None = None,
    enforce: bool = False,
    by_second: bool = True,
    streams_per_connection: int | None = 100,
    tls: bool = False,
    port: int = 0,
    rag: Mapping[str, Any] | None = None,
    buckets: Sequence[str] = (),
    batch: Mapping[str, Any] | None = None,
) -> Iterator[Standin]:
    """A stand-in, for as long as the block lasts.

    Args:
        kind: "rag_engine", "rag_corpora", "vertex_search", "search_documents", "http", "gemini", "openai",
            "openai_batches", "gemini_batches", "vertex_batches" or "rerankers".
        answers: by query, its results, best first: "id", "score", and if need be "text", "uri", "display_name",
            "title". RAG Engine's scores are distances. Of "search_documents", by document, its chunks.
        documents: ids of which all other queries find some, always the same.
        faults: faults of requests; none by default.
        latency_s: seconds until a request is answered, or their bounds.
        slow: the share of the requests that are answered after another time, and that time in seconds.
        quota_per_minute: requests allowed in any minute; a sixtieth of it, rounded up, in any second.
        enforce: whether requests over the quota are refused. Violations are counted in any case.
        by_second: whether the quota of a second is enforced, too; where calls are a second apart, arrivals are nearer
            to one another as soon as one of them is delayed.
        streams_per_connection: calls in the air on one connection, at most; for gRPC.
        tls: whether it speaks TLS with a certificate of its own. Google's services then want credentials too.
        port: port of an ended stand-in, since an address is part of a model's identity; 0 for a free port. HTTP only.
        rag: fields of `rag_state.Behaviour` for "rag_corpora".
        buckets: buckets of the Cloud Storage of "rag_corpora".
        batch: fields of `batches.JobFaults` for stand-ins with batch jobs.
    """
    low_s, high_s = latency_s if isinstance(latency_s, tuple) else (latency_s, latency_s)
    with tempfile.TemporaryDirectory() as folder:
        certificate, private_key = certificates.write(Path(folder)) if tls else (None, None)
        settings = Settings(
            answers or {}, documents, faults or Faults(), (low_s, high_s), slow, quota_per_minute, enforce,
            streams_per_connection, certificate, private_key, port, rag or {},
            tuple(buckets), by_second, batch or {},
        )  # fmt: skip
        standin = _started(kind, settings)
        try:
            yield standin
        finally:
            standin.close()


def settings_from(line: str) -> Settings:
    """The settings that a parent wrote."""
    settings = json.loads(line)
    faults = settings.pop("faults")
    tuples = {name: tuple(faults[name]) for name in ("kinds", "content_kinds")}
    return Settings(**settings, faults=Faults(**{**faults, **tuples}))


def _started(kind: str, settings: Settings) -> Standin:
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    child = Process(SERVING, SERVER_MODULES[kind], env={**os.environ, "PYTHONPATH": path}, **piped)
    try:
        port = _sent(child, json.dumps(asdict(settings)))["port"]
    except BaseException:
        _stop(child)
        raise
    scheme = "http" if settings.certificate is None else "https"
    return Standin(f"127.0.0.1:{port}", f"{scheme}://127.0.0.1:{port}", settings.certificate, child.pid, child)


def _sent(child: Process, line: str) -> dict[str, Any]:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{line}\n")
    child.stdin.flush()
    answer = child.stdout.readline()
    if not answer:
        raise RuntimeError("the stand-in ended; its standard error says why")
    figures: dict[str, Any] = json.loads(answer)
    return figures


def _stop(child: Process) -> None:
    child.kill()
    child.wait(CLOSING_S)
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        pipe.close()
