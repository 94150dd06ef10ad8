"""Show a job as text and as JSON."""

import json
import shlex
from dataclasses import asdict

from rankbeam.pipelines.local.progress import counter_lines
from rankbeam.pipelines.manage.outlook import Outlook, as_document, outlook_lines
from rankbeam.pipelines.manage.snapshots import JobSnapshot, gist
from rankbeam.pipelines.portable.engine import Flink
from rankbeam.pipelines.portable.job import EngineJob
from rankbeam.transforms.records.counters import Counter


def as_text(job: EngineJob, snapshot: JobSnapshot | None, outlook: Outlook | None = None) -> str:
    """A job, its state, progress and counters, and the commands for what can be done next; no state of a new job."""
    lines = [f"run      {job.run_id} of {job.experiment}", f"job      {job.job_name}, submitted {job.submitted_at}"]
    if (page := _page(job)) is not None:
        lines.append(f"page     {page}")
    if snapshot is None:
        return "\n".join([*lines, f"status   {_command('status', job)}", f"cancel   {job.cancel_command}"])
    lines += [f"state    {snapshot.state}", *outlook_lines(outlook)]
    lines += [f"report   {_command('report', job)}"] if snapshot.is_done else []
    lines += [] if snapshot.has_ended else [f"cancel   {job.cancel_command}"]
    lines += counter_lines(snapshot.counts)
    return "\n".join([*lines, *(["", *map(gist, snapshot.problems)] if snapshot.problems else [])])


def as_json(job: EngineJob, snapshot: JobSnapshot | None = None, outlook: Outlook | None = None) -> str:
    """A job as one JSON document, with its state, progress and counters where they are known."""
    document = {**asdict(job), "page": _page(job)}
    if snapshot is not None:
        counters = {str(counter): snapshot.counts[counter, ""] for counter in Counter}
        document |= {"state": snapshot.state, "counters": counters, "problems": list(snapshot.problems)}
        document |= as_document(outlook)
    return json.dumps(document, indent=2)


def _command(name: str, job: EngineJob) -> str:
    return shlex.join(["rankbeam", name, job.output, "--run-id", job.run_id])


def _page(job: EngineJob) -> str | None:
    if job.flink is None:
        return None
    flink = Flink(job.flink)
    return None if (job_id := flink.job(job.job_name)) is None else flink.page(job_id)
