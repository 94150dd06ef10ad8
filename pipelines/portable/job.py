"""A job on an engine behind Beam's Job API: its record beside the output, its state, and its end."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import grpc

from rankbeam.pipelines.local.runner import find_input_error
from rankbeam.pipelines.manage import jobs
from rankbeam.pipelines.manage.cluster_job import ClusterJob
from rankbeam.pipelines.manage.job_progress import JobSnapshot
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.pipelines.portable.engine import FlinkJob
from rankbeam.pipelines.portable.service import JobServerError, JobService, poll_until
from rankbeam.transforms.clients.ledger import Ledger, Owner
from rankbeam.transforms.clients.ledger.leases import process
from rankbeam.transforms.records.counters import Counter, Counts
from rankbeam.transforms.records.errors import shortened

_STEP = re.compile(r"^(?P<what>[^\n]+) \[while running '(?P<step>[^']*)'\]", re.MULTILINE)
_LONGEST = 600
LOOPBACK = "LOOPBACK"
_REMEDIES = {
    "Insufficient number of network buffers": "set taskmanager.network.sort-shuffle.min-buffers of the cluster to 64",
    "fresh sort buffer": "raise taskmanager.memory.managed.size of the cluster: a sort buffer is a share of it",
    "maximum size of a sort buffer": "set taskmanager.runtime.large-record-handler of the job server to true",
}
"""Advice by words of Flink's errors."""


def reason(message: str) -> str:
    """The cause of a job's failure: the failed step, if the message names one.

    >>> reason("Pipeline j_1 failed in state FAILED: java.io.IOException: no space left\\n\\tat a.B")
    'the job failed: java.io.IOException: no space left'
    >>> reason("IOException: The record exceeds the maximum size of a sort buffer").split("; ")[1]
    'set taskmanager.runtime.large-record-handler of the job server to true'
    >>> reason("Traceback (most recent call last):\\n  …\\nValueError: no [while running 'Read-ptransform-3']")
    'the job failed: ValueError: no (in step Read)'
    """
    if (step := _STEP.search(message)) is not None:
        name = re.sub(r"-ptransform-\d+$", "", step["step"])
        return f"the job failed: {shortened(step['what'].strip(), _LONGEST)} (in step {name})"
    if "in state CANCELLED" in message:
        return "the job was cancelled"
    first = message.partition("failed in state FAILED: ")[2] or message
    remedy = next((remedy for words, remedy in _REMEDIES.items() if words in first), "")
    return f"the job failed: {shortened(first.strip().partition(chr(10))[0], _LONGEST)}{remedy and f'; {remedy}'}"


@dataclass(frozen=True)
class EngineJob(ClusterJob):
    """A submitted job."""

    runner: str
    job_id: str
    job_name: str
    run_id: str
    run_started: str
    experiment: str
    output: str
    ledger: str | None
    submitted_at: str
    endpoint: str | None
    flink: str | None
    workers: str
    machine: str
    pid: int
    pid_started: str
    is_cancelled: bool = False
    run: RunRecord | None = None
    finished_at: str = ""

    @property
    def calls(self) -> Ledger | None:
        return None if self.ledger is None else Ledger(self.ledger, Owner(self.run_id, self.run_started))

    @property
    def outlives_submission(self) -> bool:
        """True if the job can continue without the process that submitted it."""
        return self.workers != LOOPBACK and (self.flink is not None or self.endpoint is not None)

    def at_flink(self) -> FlinkJob | None:
        """The job in Flink's API; None on other engines, and while Flink does not know the job."""
        return None if self.flink is None else FlinkJob.find(self.flink, self.job_name)

    def page(self) -> str | None:
        return None if (job := self.at_flink()) is None else job.page

    def state(self) -> str:
        """The engine's name for the state; "done" or "gone" if the engine no longer knows the job.

        A job whose cancellation was requested is "cancelled", even if the engine reports a failure.
        """
        try:
            state = self._state_at_engine()
        except JobServerError:  # it may have ended after the job
            if jobs.has_rows(self.output, self.run_id):
                return "done"
            raise
        if state == "gone" and jobs.has_rows(self.output, self.run_id):
            return "done"
        return "cancelled" if self.is_cancelled and JobSnapshot(state, Counts()).has_failed else state

    def snapshot(self) -> JobSnapshot:
        state, counts = self.state(), Counts()
        with suppress(JobServerError):  # an engine may know a job longer than its counters
            counts = self._counts()
        if (ledger := self.calls) is not None:  # lanes note their calls there; engines count those of finished tasks
            finished = sum(use.calls for use in ledger.uses())
            counts[Counter.CALLS_MADE, ""] = max(counts[Counter.CALLS_MADE, ""], finished)
        snapshot = JobSnapshot(state, counts)
        return replace(snapshot, problems=self._problems()) if state == "failed" else snapshot

    def _problems(self) -> tuple[str, ...]:
        """The error with which the job ended on Flink; job servers store none."""
        with suppress(JobServerError):
            if (job := self.at_flink()) is not None and (problem := job.problem()):
                refused = find_input_error(RuntimeError(problem))
                return (reason(problem) if refused is None else str(refused),)
        return ()

    def _counts(self) -> Counts:
        if self.flink is not None:
            return Counts() if (job := self.at_flink()) is None else job.counts()
        if self.endpoint is not None and self.job_id:
            with _connect(self.endpoint) as service:
                return service.counts(self.job_id)
        return Counts()

    def _state_at_engine(self) -> str:
        if (job := self.at_flink()) is not None:
            return job.state().lower()
        if self.endpoint is not None and self.job_id:  # Flink gets the job from there, after some seconds
            try:
                with _connect(self.endpoint) as service:
                    return service.state(self.job_id).lower()
            except JobServerError:
                if self.flink is None:
                    raise
        return "running" if self._is_submitter_alive() else "gone"

    def is_at_work(self) -> bool:
        """Return whether the job is still running, as far as its engine knows."""
        try:
            return not JobSnapshot(self.state(), Counts()).has_ended
        except JobServerError:
            return self._is_submitter_alive()

    def stop_calls(self) -> None:
        """Record the cancellation, so that the job's lanes begin no further call.

        An engine may let lanes run to their end after it has cancelled a job.
        """
        replace(self, is_cancelled=True).save()
        if (ledger := self.calls) is not None:
            ledger.request_stop()

    def cancel(self, within_s: float) -> bool:
        """Cancel the job, wait for its end, and return whether it ended in time."""
        try:
            self._request_end()
        finally:  # after the engine knows: otherwise it would take the end of the calls for a failure
            self.stop_calls()
        return bool(poll_until(lambda: True if not self.is_at_work() else None, within_s))

    def _request_end(self) -> None:
        if self.flink is not None:
            if (job := self.at_flink()) is not None:
                job.cancel()
        elif self.endpoint is not None and self.job_id:
            with _connect(self.endpoint) as service:
                service.cancel(self.job_id)
        elif self._is_submitter_alive():  # its own job server ends with it
            os.kill(self.pid, signal.SIGINT)

    def _is_submitter_alive(self) -> bool:
        if self.machine != process.machine() or self.pid == os.getpid():
            return False  # this process follows one job at a time
        return process.start_time(self.pid) == self.pid_started


def is_record_of_engine(record: dict[str, Any]) -> bool:
    """Return whether a record describes a job behind Beam's Job API rather than on Dataflow."""
    return "runner" in record


@contextmanager
def _connect(endpoint: str) -> Iterator[JobService]:
    with grpc.insecure_channel(endpoint) as channel:
        yield JobService(channel, endpoint)
