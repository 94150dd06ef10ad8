"""Show a job as text and as JSON."""

import json
from dataclasses import asdict

from rankbeam.pipelines.local.progress import counter_lines
from rankbeam.pipelines.portable.engine import Flink
from rankbeam.pipelines.portable.job import EngineJob, EngineSnapshot
from rankbeam.transforms.records.counters import Counter


def as_text(job: EngineJob, snapshot: EngineSnapshot) -> str:
    """A job, its state and counters, and the command that cancels it while it is at work."""
    lines = [f"run      {job.run_id} of {job.experiment}", f"job      {job.job_name}, submitted {job.submitted_at}"]
    if (page := _page(job)) is not None:
        lines.append(f"page     {page}")
    lines.append(f"state    {snapshot.state}")
    lines += [] if snapshot.has_ended else [f"cancel   {job.cancel_command}"]
    return "\n".join([*lines, *counter_lines(snapshot.counts)])


def as_json(job: EngineJob, snapshot: EngineSnapshot) -> str:
    """A job, its state and its counters as one JSON document."""
    counters = {str(counter): snapshot.counts[counter, ""] for counter in Counter}
    return json.dumps({**asdict(job), "page": _page(job), "state": snapshot.state, "counters": counters}, indent=2)


def _page(job: EngineJob) -> str | None:
    if job.flink is None:
        return None
    flink = Flink(job.flink)
    return None if (job_id := flink.job(job.job_name)) is None else flink.page(job_id)
