"""Flink's REST API: it knows a job after the job server has gone, and its counters before the job has ended."""

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions
from apache_beam.portability.api import metrics_pb2
from google.protobuf.json_format import ParseDict

from rankbeam.pipelines.portable.polling import poll_until
from rankbeam.pipelines.portable.service import JobServerError, counts_of
from rankbeam.transforms.records.counters import Counts
from rankbeam.transforms.records.errors import InputError

_TIMEOUT_S = 5.0
_ENDED = frozenset({"FINISHED", "CANCELED", "FAILED"})
_URL = re.compile("https?://")


def address_of(options: PipelineOptions) -> str | None:
    """The address of Flink's REST API and dashboard, where the options name a cluster."""
    master: str = options.view_as(FlinkRunnerOptions).flink_master
    return master.rstrip("/") if _URL.match(master) else None


def refuse_unreachable(options: PipelineOptions) -> None:
    """Refuse a cluster that does not answer."""
    if (address := address_of(options)) is None:
        return
    try:
        Flink(address).get("/config")
    except JobServerError as error:
        raise InputError(f"--flink_master: {error}; it is the address of Flink's REST API and dashboard") from error


class Flink:
    """A Flink cluster, by the address of its REST API with the scheme."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str) -> Mapping[str, Any]:
        return self._request("GET", path)

    def job(self, name: str) -> str | None:
        """The id of the latest job of that name; None where Flink has none, or no longer has it."""
        jobs = [job for job in self.get("/jobs/overview")["jobs"] if job["name"] == name]
        return max(jobs, key=lambda job: int(job["start-time"]))["jid"] if jobs else None

    def page(self, job: str) -> str:
        return f"{self._address}/#/job/running/{job}"

    def state(self, job: str) -> str:
        return str(self.get(f"/jobs/{job}")["state"])

    def state_and_tasks(self, job: str) -> str:
        """State and finished tasks, such as "running, 24 of 88 tasks done"."""
        details = self.get(f"/jobs/{job}")
        tasks = [vertex["tasks"] for vertex in details["vertices"]]
        done, total = sum(states["FINISHED"] for states in tasks), sum(sum(states.values()) for states in tasks)
        return f"{details['state'].lower()}, {done} of {total} tasks done"

    def counts(self, job: str) -> Counts:
        """Rankbeam's counters, summed over all steps, as of the latest heartbeats of the job's tasks."""
        for accumulator in self.get(f"/jobs/{job}/accumulators?includeSerializedValue=false")["user-task-accumulators"]:
            if accumulator["type"] == "MetricsAccumulator":
                infos = json.loads(accumulator["value"])["metrics"].get("attempted", ())
                return counts_of(ParseDict(info, metrics_pb2.MonitoringInfo()) for info in infos)
        return counts_of(())

    def problem(self, job: str) -> str:
        """The error that a job ended with, and its stack trace; "" without an error."""
        answer = self.get(f"/jobs/{job}/exceptions")
        entries = (answer.get("exceptionHistory") or {}).get("entries") or []
        return str(entries[0]["stacktrace"] if entries else answer.get("root-exception") or "")

    def cancel(self, job: str) -> None:
        """Request cancellation; the job continues for a while."""
        self._request("PATCH", f"/jobs/{job}?mode=cancel")

    def wait_until_ended(self, job: str, within_s: float) -> str | None:
        """Wait for the end of a job; return its last state, or None if it still runs."""

        def ended() -> str | None:
            return state if (state := self.state(job)) in _ENDED else None

        return poll_until(ended, within_s)

    def _request(self, method: str, path: str) -> Mapping[str, Any]:
        try:
            answer = httpx.request(method, f"{self._address}{path}", timeout=_TIMEOUT_S, follow_redirects=True)
            answer.raise_for_status()
            body: Mapping[str, Any] = answer.json() if answer.content else {}
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise JobServerError(f"no Flink answers at {self._address}: {error}") from error
        return body
