"""A job on an engine behind Beam's Job API: its record beside the output, its state, and its end."""

import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import grpc

from rankbeam.pipelines.local.runner import find_input_error
from rankbeam.pipelines.manage import jobs, run_record
from rankbeam.pipelines.manage.run_record import RunRecord
from rankbeam.pipelines.manage.snapshots import JobSnapshot
from rankbeam.pipelines.portable.engine import Flink
from rankbeam.pipelines.portable.polling import poll_until
from rankbeam.pipelines.portable.reasons import reason
from rankbeam.pipelines.portable.service import JobServerError, JobService
from rankbeam.transforms.clients.ledger import Ledger, Owner
from rankbeam.transforms.clients.ledger.leases import process
from rankbeam.transforms.records.counters import Counter, Counts
from rankbeam.transforms.records.errors import InputError

LOOPBACK = "LOOPBACK"


@dataclass(frozen=True)
class EngineJob:
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

    def save(self) -> None:
        jobs.save(self.output, self.run_id, asdict(self))

    @property
    def calls(self) -> Ledger | None:
        """The ledger; None for a job without calls."""
        return None if self.ledger is None else Ledger(self.ledger, Owner(self.run_id, self.run_started))

    @property
    def cancel_command(self) -> str:
        """The command that cancels the job."""
        return shlex.join(["rankbeam", "cancel", self.output, "--run-id", self.run_id])

    @property
    def outlives_submission(self) -> bool:
        """True if the job can continue without the process that submitted it."""
        return self.workers != LOOPBACK and (self.flink is not None or self.endpoint is not None)

    def state(self) -> str:
        """The engine's name for the state; "done" or "gone" if the engine no longer knows the job.

        A job whose cancellation was requested is "cancelled", even where the engine reports a failure.
        """
        state = self._state_at_engine()
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
        """The error that Flink ended the job with; job servers keep none."""
        if self.flink is None:
            return ()
        with suppress(JobServerError):
            flink = Flink(self.flink)
            if (job := flink.job(self.job_name)) is not None and (problem := flink.problem(job)):
                refused = find_input_error(RuntimeError(problem))
                return (reason(problem) if refused is None else str(refused),)
        return ()

    def _counts(self) -> Counts:
        if self.flink is not None:
            flink = Flink(self.flink)
            return Counts() if (job := flink.job(self.job_name)) is None else flink.counts(job)
        if self.endpoint is not None and self.job_id:
            with _connected(self.endpoint) as service:
                return service.counts(self.job_id)
        return Counts()

    def _state_at_engine(self) -> str:
        if self.flink is not None:
            flink = Flink(self.flink)
            if (job := flink.job(self.job_name)) is not None:
                return flink.state(job).lower()
        if self.endpoint is not None and self.job_id:  # Flink gets the job from there, after some seconds
            try:
                with _connected(self.endpoint) as service:
                    return service.state(self.job_id).lower()
            except JobServerError:
                if self.flink is None:
                    raise
        return "running" if self._is_submitter_alive() else "gone"

    def is_at_work(self) -> bool:
        """Return whether the job still runs, as far as its engine can tell."""
        try:
            return not JobSnapshot(self.state(), Counts()).has_ended
        except JobServerError:
            return self._is_submitter_alive()

    def stop_calls(self) -> None:
        """Record the cancellation, so that the job's lanes begin no further call.

        An engine that cancels a job may leave its lanes to their end.
        """
        replace(self, is_cancelled=True).save()
        if (ledger := self.calls) is not None:
            ledger.request_stop()

    def withdraw_stop(self) -> None:
        """Undo `stop_calls` after the job has ended."""
        if (ledger := self.calls) is not None:
            ledger.withdraw_stop()

    def cancel(self, within_s: float) -> bool:
        """Cancel the job, wait for its end, and return whether it ended in time."""
        try:
            self._request_end()
        finally:  # after the engine knows: otherwise it would take the end of the calls for a failure
            self.stop_calls()
        if is_over := bool(poll_until(lambda: True if not self.is_at_work() else None, within_s)):
            self.withdraw_stop()
        return is_over

    def _request_end(self) -> None:
        if self.flink is not None:
            flink = Flink(self.flink)
            if (job := flink.job(self.job_name)) is not None:
                flink.cancel(job)
        elif self.endpoint is not None and self.job_id:
            with _connected(self.endpoint) as service:
                service.cancel(self.job_id)
        elif self._is_submitter_alive():  # its own job server ends with it
            os.kill(self.pid, signal.SIGINT)

    def _is_submitter_alive(self) -> bool:
        if self.machine != process.machine() or self.pid == os.getpid():
            return False  # this process follows one job at a time
        return process.started(self.pid) == self.pid_started


def of_record(record: dict[str, Any], output: str) -> EngineJob:
    try:
        return EngineJob(**{**record, "run": run_record.read(record, output)})
    except TypeError as error:
        raise InputError(f"holds a record of a job that cannot be read: {error}", path=output) from error


def is_record_of_engine(record: dict[str, Any]) -> bool:
    """Return whether a record describes a job behind Beam's Job API rather than on Dataflow."""
    return "runner" in record


def refuse_second(output: str, run_id: str) -> None:
    """Refuse a run that another job is still writing: that job would lose its rows."""
    try:
        record = jobs.find(output, run_id)
    except InputError:  # no job was submitted
        return
    if not is_record_of_engine(record):
        return
    earlier = of_record(record, output)
    if earlier.is_at_work():
        advice = f"wait for it, cancel it ({earlier.cancel_command}), or choose another --run-id"
        raise InputError(f"the job {earlier.job_name} is still writing the run {run_id}; {advice}")


@contextmanager
def _connected(endpoint: str) -> Iterator[JobService]:
    with grpc.insecure_channel(endpoint) as channel:
        yield JobService(channel, endpoint)
