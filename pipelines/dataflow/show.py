"""Show a job as text and as JSON, with remedies for its failures.

Texts: https://cloud.google.com/dataflow/docs/guides/common-errors and …/troubleshoot-oom
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from rankbeam.pipelines.dataflow.record import DataflowJob
from rankbeam.pipelines.dataflow.service import DONE, SERVICE
from rankbeam.pipelines.local.progress import counter_lines
from rankbeam.pipelines.manage.job_progress import JobProgress, JobSnapshot, as_document, gist, outlook_lines
from rankbeam.transforms.clients.storage import remedies

_MEMORY = re.compile(r"lack of memory|out of memory|OutOfMemory|\bMemoryError\b|oom-kill", re.IGNORECASE)
_LOST = re.compile(r"lost contact with the service|SDK harness \S+ disconnected")
_REGIONAL = re.compile(r"Quota '\w+' exceeded|QUOTA_EXCEEDED|project quota may have been exceeded")
_EXHAUSTED = re.compile(r"ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available")
_ACCOUNT = re.compile(r"should be granted to controller service account (?P<account>[\w.@-]*\w)")
_ADDRESSES = "IN_USE_ADDRESSES"


def format_submission(job: DataflowJob) -> str:
    return "\n".join([*_about(job), f"status   {command(job)}", f"cancel   {job.cancel}"])


def command(job: DataflowJob) -> str:
    return shlex.join(["rankbeam", "status", job.output, "--run-id", job.run_id])


def as_text(job: DataflowJob, snapshot: JobSnapshot, outlook: JobProgress | None = None) -> str:
    lines = [*_about(job), f"state    {snapshot.state}", *outlook_lines(outlook)]
    if snapshot.state == DONE and job.output:
        lines.append(f"report   {shlex.join(['rankbeam', 'report', job.output, '--run-id', job.run_id])}")
    lines += [] if snapshot.has_ended else [f"cancel   {job.cancel}"]
    lines += counter_lines(snapshot.counts)
    lines += ["", *map(gist, snapshot.problems), *remedies_of(snapshot.problems, job)] if snapshot.problems else []
    return "\n".join(lines)


def as_json(job: DataflowJob, snapshot: JobSnapshot | None = None, outlook: JobProgress | None = None) -> str:
    """A job as one JSON document, with its state and counters where they are known."""
    document: dict[str, Any] = {**asdict(job), "console": job.console}
    if snapshot is not None:
        document |= as_document(snapshot, outlook) | {"remedies": remedies_of(snapshot.problems, job)}
    return json.dumps(document, indent=2)


def _about(job: DataflowJob) -> list[str]:
    run = [f"run      {job.run_id} of {job.experiment}"] if job.run_id else []
    when = f", submitted {job.submitted_at}" if job.submitted_at else ""
    return [*run, f"job      {job.job_id or job.job_name}{when}", f"console  {job.console}"]


def remedies_of(problems: Iterable[str], job: DataflowJob) -> list[str]:
    """Return advice about the messages of a failed job, each once; it is empty if no command helps."""
    return list(dict.fromkeys(advice for problem in problems for advice in _advice(problem, job)))


def _advice(problem: str, job: DataflowJob) -> Iterator[str]:
    if (granted := _ACCOUNT.search(problem)) is not None:
        member = f"--member serviceAccount:{granted['account']} --role roles/dataflow.worker"
        yield f"grant the role: `gcloud projects add-iam-policy-binding {job.project} {member}`"
    elif enabling := remedies.enable(problem, SERVICE, job.project):
        yield enabling
    elif _REGIONAL.search(problem):
        fewer = "--no_use_public_ips" if _ADDRESSES in problem else "a lower --max_num_workers"
        shows = f"gcloud compute regions describe {job.region} --project {job.project}"
        yield f"repeat the command with {fewer}, or with another --region; `{shows}` shows the quotas of the region"
    elif _EXHAUSTED.search(problem):
        yield "repeat the command with another --region, or with a --worker_zone that has machines left"
    elif (memory := _MEMORY.search(problem)) or _LOST.search(problem):
        cause = "a worker had too little memory" if memory else "workers were lost, usually for lack of memory"
        more = "--worker_machine_type n2-highmem-4, or fewer --number_of_worker_harness_threads"
        yield f"{cause}: repeat the command with {more}; the ledger keeps all answers"
