"""Flink's REST API, which knows a job after the job server has gone, and its counters before the job has ended."""

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
from apache_beam.portability.api import metrics_pb2
from google.protobuf.json_format import ParseDict

from rankbeam.pipelines.portable.service import JobServerError, counts_of, poll_until
from rankbeam.transforms.records.counters import Counts
from rankbeam.transforms.records.errors import InputError, pluralize

_TIMEOUT_S = 5.0
_ENDED = frozenset({"FINISHED", "CANCELED", "FAILED"})
_URL = re.compile("https?://")


def address_of(options: PipelineOptions) -> str | None:
    """The address of Flink's REST API and dashboard, if the options name a cluster."""
    master: str = options.view_as(FlinkRunnerOptions).flink_master
    return master.rstrip("/") if _URL.match(master) else None


def refuse_unreachable(options: PipelineOptions) -> None:
    if (address := address_of(options)) is None:
        return
    try:
        _request(address, "/config")
    except JobServerError as error:
        raise InputError(f"--flink_master: {error}; it is the address of Flink's REST API and dashboard") from error


@dataclass(frozen=True)
class FlinkJob:
    """A job on a Flink cluster, by the address of the cluster's REST API, with its scheme, and the job's id."""

    address: str
    id: str

    @classmethod
    def find(cls, address: str, name: str) -> "FlinkJob | None":
        """The latest job of that name; None if Flink has none, or no longer has it."""
        jobs = [job for job in _request(address, "/jobs/overview")["jobs"] if job["name"] == name]
        return cls(address, max(jobs, key=lambda job: int(job["start-time"]))["jid"]) if jobs else None

    @property
    def page(self) -> str:
        return f"{self.address}/#/job/running/{self.id}"

    def state(self) -> str:
        """The state as of now; the job's details may be three seconds old."""
        return str(self._get("/status")["status"])

    def state_and_tasks(self) -> str:
        """State and finished tasks, such as "running, 24 of 88 tasks done"."""
        details = self._get()
        tasks = [vertex["tasks"] for vertex in details["vertices"]]
        done, total = sum(states["FINISHED"] for states in tasks), sum(sum(states.values()) for states in tasks)
        return f"{details['state'].lower()}, {done} of {pluralize(total, 'task')} done"

    def counts(self) -> Counts:
        """Rankbeam's counters, summed over all steps, as of the latest heartbeats of the job's tasks."""
        for accumulator in self._get("/accumulators?includeSerializedValue=false")["user-task-accumulators"]:
            if accumulator["type"] == "MetricsAccumulator":
                infos = json.loads(accumulator["value"])["metrics"].get("attempted", ())
                return counts_of(ParseDict(info, metrics_pb2.MonitoringInfo()) for info in infos)
        return counts_of(())

    def problem(self) -> str:
        """The error that the job ended with, and its stack trace; "" without an error."""
        answer = self._get("/exceptions")
        entries = (answer.get("exceptionHistory") or {}).get("entries") or []
        return str(entries[0]["stacktrace"] if entries else answer.get("root-exception") or "")

    def cancel(self) -> None:
        """Request cancellation; the job continues for a while."""
        _request(self.address, f"/jobs/{self.id}?mode=cancel", "PATCH")

    def wait_until_ended(self, within_s: float) -> str | None:
        """Wait for the end of the job; return its last state, or None if it still runs."""
        return poll_until(lambda: state if (state := self.state()) in _ENDED else None, within_s)

    def _get(self, part: str = "") -> Mapping[str, Any]:
        return _request(self.address, f"/jobs/{self.id}{part}")


def _request(address: str, path: str, method: str = "GET") -> Mapping[str, Any]:
    try:
        answer = _client().request(method, f"{address}{path}")
        answer.raise_for_status()
        body: Mapping[str, Any] = answer.json() if answer.content else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise JobServerError(f"no Flink answers at {address}: {error}") from error
    return body


@functools.cache
def _client() -> httpx.Client:
    """One for all requests: each client holds 1.4 MB of certificates until the garbage collector finds it."""
    none_kept = httpx.Limits(max_keepalive_connections=0)  # a cluster that was restarted has closed its connections
    return httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True, limits=none_kept)
