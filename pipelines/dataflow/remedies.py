"""Remedies for the failures of a job.

Texts: https://cloud.google.com/dataflow/docs/guides/common-errors and …/troubleshoot-oom
"""

import re
from collections.abc import Iterable, Iterator

from rankbeam.transforms.clients.storage import remedies

SERVICE = "dataflow.googleapis.com"
_MEMORY = re.compile(r"lack of memory|out of memory|OutOfMemory|\bMemoryError\b|oom-kill", re.IGNORECASE)
_LOST = re.compile(r"lost contact with the service|SDK harness \S+ disconnected")
_REGIONAL = re.compile(r"Quota '\w+' exceeded|QUOTA_EXCEEDED|project quota may have been exceeded")
_EXHAUSTED = re.compile(r"ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available")
_ACCOUNT = re.compile(r"should be granted to controller service account (?P<account>[\w.@-]*\w)")
_ADDRESSES = "IN_USE_ADDRESSES"


def remedies_of(problems: Iterable[str], project: str, region: str) -> list[str]:
    """Return advice about the messages of a failed job, each once; it is empty if no command helps."""
    return list(dict.fromkeys(advice for problem in problems for advice in _advice(problem, project, region)))


def _advice(problem: str, project: str, region: str) -> Iterator[str]:
    if (granted := _ACCOUNT.search(problem)) is not None:
        member = f"--member serviceAccount:{granted['account']} --role roles/dataflow.worker"
        yield f"grant the role: `gcloud projects add-iam-policy-binding {project} {member}`"
    elif enabling := remedies.enable(problem, SERVICE, project):
        yield enabling
    elif _REGIONAL.search(problem):
        fewer = "--no_use_public_ips" if _ADDRESSES in problem else "a lower --max_num_workers"
        shows = f"gcloud compute regions describe {region} --project {project}"
        yield f"repeat the command with {fewer}, or with another --region; `{shows}` shows the quotas of the region"
    elif _EXHAUSTED.search(problem):
        yield "repeat the command with another --region, or with a --worker_zone that has machines left"
    elif (memory := _MEMORY.search(problem)) or _LOST.search(problem):
        cause = "a worker had too little memory" if memory else "workers were lost, usually for lack of memory"
        more = "--worker_machine_type n2-highmem-4, or fewer --number_of_worker_harness_threads"
        yield f"{cause}: repeat the command with {more}; the ledger keeps all answers"
