"""The command line for submitted jobs on any engine: find them by their output, show, follow and finish them."""

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rankbeam.pipelines.api.jobs import of_record, snapshot_of
from rankbeam.pipelines.local import messages
from rankbeam.pipelines.local.interrupt import Interrupted
from rankbeam.pipelines.local.messages import FAILED, RUNNING, leave, warn

if TYPE_CHECKING:
    from rankbeam.pipelines.dataflow.record import DataflowJob
    from rankbeam.pipelines.manage.job_progress import JobSnapshot
    from rankbeam.pipelines.portable.job import EngineJob


def identified(job: "DataflowJob | EngineJob") -> "DataflowJob | EngineJob":
    """The job with the id that Dataflow gave it, which a template's launcher does not know."""
    from rankbeam.pipelines.portable.job import EngineJob

    if isinstance(job, EngineJob):
        return job
    from rankbeam.pipelines.dataflow.service import DataflowService

    return DataflowService(job.endpoint).with_job_id(job)


def status_of(snapshot: "JobSnapshot") -> int:
    return FAILED if snapshot.has_failed else 0 if snapshot.has_ended else RUNNING


def follow(job: "DataflowJob | EngineJob") -> "JobSnapshot":
    """Show a job's progress until it ends; Ctrl-C stops showing it, and the job goes on."""
    from rankbeam.pipelines.local.progress import show_repeatedly
    from rankbeam.pipelines.manage import job_progress
    from rankbeam.pipelines.manage.job_progress import Watch

    watch, line = Watch(job.run, job.run_id), ["looking for the job"]

    def show(snapshot: "JobSnapshot") -> None:
        line[0] = watch.line(snapshot, datetime.now(UTC))

    try:
        with show_repeatedly(lambda: (line[0], None)):
            return job_progress.follow(lambda: snapshot_of(job), show)
    except KeyboardInterrupt:
        raise Interrupted([], "the job goes on") from None


def finish_ended(output: str, run_id: str | None) -> list[str]:
    """Finish an output's runs whose jobs have ended without a process that waited for them; return what failed.

    If the requested run has no result, this exits with the status of its job. If it is only the latest run, and earlier
    runs have results, this warns.
    """
    from rankbeam.pipelines.manage import finish, jobs
    from rankbeam.transforms.records.errors import RankbeamError

    records = [record for record in jobs.every(output) if run_id in (None, record.get("run_id"))]
    unfinished: list[str] = []
    end = _JobEnd()
    with messages.log_to_stderr():
        for record in records:
            name, is_last, end = str(record.get("run_id")), record is records[-1], _JobEnd()
            if record.get("finished_at") or not (is_last or record.get("run")):
                continue
            has_rows = jobs.has_rows(output, name)
            if not (has_rows or is_last):
                continue
            end = _end(record, output, has_rows=has_rows)
            if end.obstacle:
                continue
            try:
                notes = finish.finish(output, name, is_loaded=end.is_loaded)
            except (RankbeamError, OSError) as error:
                problem = (isinstance(error, OSError) and error.strerror) or error
                unfinished.append(f"run {name} is not finished: {problem}")
                continue
            for note in notes:
                messages.say(f"rankbeam: run {name}: {note}")
    if end.obstacle:
        if run_id is not None or not _has_result(output):
            leave(end.obstacle, end.status)
        warn(f"{end.obstacle}; the report is of an earlier run")
    return unfinished


@dataclass(frozen=True)
class _JobEnd:
    """The end of a job: the reason why its run has no result ("" if it has one), and an exit status."""

    obstacle: str = ""
    status: int = 0
    is_loaded: bool = False  # whether the job itself has loaded its run into BigQuery


def _end(record: dict[str, object], output: str, *, has_rows: bool) -> _JobEnd:
    from rankbeam.pipelines.manage.job_progress import gist
    from rankbeam.pipelines.portable.job import EngineJob
    from rankbeam.transforms.records.errors import RankbeamError

    job = of_record(record, output)
    named = f"run {job.run_id}"
    try:
        snapshot = snapshot_of(job)
    except RankbeamError as error:
        if has_rows:  # an engine forgets its jobs
            return _JobEnd()
        return _JobEnd(f"{named} has no result yet, and the state of its job is not known: {error}", FAILED)
    loads = job.run is None or job.run.bigquery is not None  # after the last row
    if has_rows and (snapshot.has_ended or not loads):
        done = "finished" if isinstance(job, EngineJob) else "done"  # an engine's "done" may be inferred from the rows
        return _JobEnd(is_loaded=snapshot.state == done)
    if not snapshot.has_ended:
        command = shlex.join(["rankbeam", "status", output, "--run-id", job.run_id])
        return _JobEnd(f"{named} has no result yet: its job is {snapshot.state}; `{command}` shows it", RUNNING)
    why = f": {gist(snapshot.problems[-1])}" if snapshot.problems else ""
    return _JobEnd(f"{named} has no result: its job is {snapshot.state}{why}", FAILED)


def _has_result(output: str) -> bool:
    from rankbeam.transforms.clients.warehouse.duckdb import finished_runs
    from rankbeam.transforms.records.errors import InputError

    try:
        return bool(finished_runs(output))
    except InputError:
        return False
