"""Show a job as text and as JSON."""

import json
import shlex
from dataclasses import asdict
from typing import Any

from rankbeam.pipelines.dataflow.record import DataflowJob
from rankbeam.pipelines.dataflow.remedies import remedies_of
from rankbeam.pipelines.dataflow.service import DONE
from rankbeam.pipelines.local.progress import counter_lines
from rankbeam.pipelines.manage.outlook import Outlook, as_document, outlook_lines
from rankbeam.pipelines.manage.snapshots import JobSnapshot, gist
from rankbeam.transforms.records.counters import Counter


def submitted(job: DataflowJob) -> str:
    """Describe a new job, with the commands that show and cancel it."""
    return "\n".join([*_about(job), f"status   {command(job)}", f"cancel   {job.cancel}"])


def command(job: DataflowJob) -> str:
    """The command that shows the status of a job."""
    return shlex.join(["rankbeam", "status", job.output, "--run-id", job.run_id])


def as_text(job: DataflowJob, snapshot: JobSnapshot, outlook: Outlook | None = None) -> str:
    lines = [*_about(job), f"state    {snapshot.state}", *outlook_lines(outlook)]
    if snapshot.state == DONE and job.output:
        lines.append(f"report   {shlex.join(['rankbeam', 'report', job.output, '--run-id', job.run_id])}")
    lines += [] if snapshot.has_ended else [f"cancel   {job.cancel}"]
    lines += counter_lines(snapshot.counts)
    lines += ["", *map(gist, snapshot.problems), *remedies_of(snapshot.problems, job)] if snapshot.problems else []
    return "\n".join(lines)


def as_json(job: DataflowJob, snapshot: JobSnapshot | None = None, outlook: Outlook | None = None) -> str:
    """A job as one JSON document, with its state and counters where they are known."""
    document: dict[str, Any] = {**asdict(job), "console": job.console}
    if snapshot is not None:
        counters = {str(counter): snapshot.counts[counter, ""] for counter in Counter}
        document |= {"state": snapshot.state, "counters": counters, "problems": list(snapshot.problems)}
        document["remedies"] = remedies_of(snapshot.problems, job)
        document |= as_document(outlook)
    return json.dumps(document, indent=2)


def _about(job: DataflowJob) -> list[str]:
    run = [f"run      {job.run_id} of {job.experiment}"] if job.run_id else []
    when = f", submitted {job.submitted_at}" if job.submitted_at else ""
    return [*run, f"job      {job.job_id or job.job_name}{when}", f"console  {job.console}"]
