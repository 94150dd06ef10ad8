"""Show a job as text and as JSON."""

import json
from dataclasses import asdict

from rankbeam.pipelines.portable.engine import Flink
from rankbeam.pipelines.portable.job import Job


def as_text(job: Job) -> str:
    """A job, its state, and the command that cancels it while it is at work."""
    lines = [f"run      {job.run_id} of {job.experiment}", f"job      {job.job_name}, submitted {job.submitted_at}"]
    if (page := _page(job)) is not None:
        lines.append(f"page     {page}")
    lines.append(f"state    {job.state()}")
    return "\n".join([*lines, f"cancel   {job.cancel_command}"] if job.is_at_work() else lines)


def as_json(job: Job) -> str:
    """A job and its state as one JSON document."""
    return json.dumps({**asdict(job), "page": _page(job), "state": job.state()}, indent=2)


def _page(job: Job) -> str | None:
    if job.flink is None:
        return None
    flink = Flink(job.flink)
    return None if (found := flink.job(job.job_name)) is None else flink.page(found)
