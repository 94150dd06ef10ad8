"""The REST interface of Dataflow, as far as Beam's runner and we use it: jobs, their messages, their metrics."""

import itertools
import json
import re
import tempfile
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from google.cloud.dataflow import JobState
from support.dataflow.execution import execute

JOBS = re.compile(
    r"/v1b3/projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)/jobs(/(?P<job>[^/]+))?(/(?P<part>\w+))?"
)
ACTIVE = ("JOB_STATE_PENDING", "JOB_STATE_RUNNING")
TIME = "2026-01-02T03:04:05Z"


@dataclass
class Running:
    """One job.

    Attributes:
        body: as it was submitted.
        answer: its worker's answer.
        metrics, messages: as Dataflow tells of them.
        may_run: it is pending until this is set.
        ended: is set when its state is final.
    """

    body: dict[str, Any]
    answer: dict[str, Any] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    may_run: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def state(self) -> str:
        """As Dataflow names it."""
        return str(self.body["currentState"])

    def enter(self, state: str) -> None:
        """Enter another state; the last one is final."""
        self.body["currentState"] = state
        if state not in ACTIVE:
            self.ended.set()

    def fail(self, message: str) -> None:
        """Fail, and say why."""
        self.messages.append(
            {"id": "1", "time": TIME, "messageText": message, "messageImportance": "JOB_MESSAGE_ERROR"}
        )
        self.enter("JOB_STATE_FAILED")


class Dataflow:
    """The service.

    Args:
        environment: variables that lead to the emulators.

    Attributes:
        jobs: by their ids, in the order in which they were submitted.
        endpoint: for --dataflow_endpoint.
        holds: jobs stay pending until this is unset.
        refuses: makes of a job the message that it fails with, instead of doing what it says.
        requests: the paths of all requests.
        denies: the message that refuses every submission.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.jobs: dict[str, Running] = {}
        self.requests: list[str] = []
        self.holds, self.denies = False, ""
        self.refuses: Callable[[Running], str] | None = None
        self._environment = environment
        self._numbers = itertools.count(1)
        self._server = Server(self)
        self.endpoint = f"http://localhost:{self._server.server_port}"  # Beam speaks REST to localhost only
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def last(self) -> Running:
        """The job that was submitted last."""
        return list(self.jobs.values())[-1]

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def create(self, project: str, region: str, body: dict[str, Any]) -> dict[str, Any]:
        """Take a job; one of a name that is active already is what comes back instead of a second one."""
        for job in self.jobs.values():
            if job.body["name"] == body["name"] and job.state in ACTIVE:
                return job.body
        job_id = f"2026-01-02_03_04_05-{next(self._numbers):019}"
        body |= {"id": job_id, "projectId": project, "location": region, "currentState": "JOB_STATE_PENDING"}
        running = self.jobs[job_id] = Running(body)
        if not self.holds:
            running.may_run.set()
        threading.Thread(target=self._work, args=(running,), daemon=True).start()
        return body

    def listed(self, name: str) -> list[dict[str, Any]]:
        """The jobs of a name as a list has them: without labels and environment; the latest first."""
        fields = ("id", "projectId", "location", "name", "currentState", "createTime")
        jobs = [job.body for job in self.jobs.values() if job.body["name"] == name]
        return [{key: body[key] for key in fields if key in body} for body in reversed(jobs)]

    def _work(self, job: Running) -> None:
        job.may_run.wait()
        if job.ended.is_set():
            return
        if self.refuses is not None:
            job.fail(self.refuses(job))
            return
        job.enter("JOB_STATE_RUNNING")
        with tempfile.TemporaryDirectory(prefix="dataflow-", ignore_cleanup_errors=True) as folder:
            try:
                job.answer = execute(job.body, Path(folder), self._environment)
            except Exception as error:
                job.answer = {"error": f"the stand-in failed: {error!r}"}
        if "error" in job.answer:
            job.fail(job.answer["error"])
            return
        job.metrics = [metric(counter["name"], counter["value"], counter) for counter in job.answer["counters"]]
        job.enter("JOB_STATE_DONE")


def metric(name: str, value: int, of: Mapping[str, Any], *, tentative: bool = False) -> dict[str, Any]:
    """A counter as Dataflow tells of it.

    Args:
        name: name of the counter.
        value: value of the counter.
        of: its namespace and step.
        tentative: whether it counts what bundles at work have done too.
    """
    context = {"namespace": of["namespace"], "step": of["step"]} | ({"tentative": "true"} if tentative else {})
    return {"name": {"origin": "user", "name": name, "context": context}, "scalar": value, "updateTime": TIME}


class Handler(BaseHTTPRequestHandler):
    """One request; the server it belongs to knows the service."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_POST(self) -> None:
        place, body, service = self._place(), self._body(), self.server.service
        if service.denies:
            self._say({"error": {"code": 403, "message": service.denies, "status": "PERMISSION_DENIED"}}, 403)
        else:
            self._say(service.create(place["project"], place["region"], body))

    def do_GET(self) -> None:
        if not self._place()["job"]:
            self._say({"jobs": self.server.service.listed(self._query("name"))})
        elif (job := self._job()) is not None:
            answers = {"messages": {"jobMessages": job.messages}, "metrics": {"metrics": job.metrics}}
            self._say(answers.get(self._place()["part"], job.body))

    def do_PUT(self) -> None:
        if (job := self._job()) is not None:
            state = str(self._body()["requestedState"])  # Google's clients write enums as numbers
            job.enter(JobState(int(state)).name if state.isdigit() else state)
            job.may_run.set()
            self._say(job.body)

    def _place(self) -> dict[str, str]:
        self.server.service.requests.append(self.path)
        match = JOBS.fullmatch(urllib.parse.urlparse(self.path).path)
        assert match is not None, self.path
        return {name: value or "" for name, value in match.groupdict().items()}

    def _query(self, name: str) -> str:
        return urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)[name][0]

    def _job(self) -> Running | None:
        place = self._place()
        job = self.server.service.jobs.get(place["job"])
        if job is not None and (job.body["projectId"], job.body["location"]) == (place["project"], place["region"]):
            return job
        message = f"(1a2b): Information about job {place['job']} could not be found in our system."
        self._say({"error": {"code": 404, "message": message, "status": "NOT_FOUND"}}, 404)
        return None

    def _body(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return content

    def _say(self, content: Mapping[str, Any], status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Listens on a free port of this machine."""

    def __init__(self, service: Dataflow) -> None:
        super().__init__(("localhost", 0), Handler)
        self.service = service


@contextmanager
def dataflow(environment: Mapping[str, str]) -> Iterator[Dataflow]:
    """Dataflow, for as long as the block lasts; jobs that are still held then are cancelled.

    Args:
        environment: variables that lead to the emulators.
    """
    service = Dataflow(environment)
    try:
        yield service
    finally:
        for job in service.jobs.values():
            if not job.may_run.is_set():
                job.enter("JOB_STATE_CANCELLED")
                job.may_run.set()
        service.close()
