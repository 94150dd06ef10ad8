"""Failed jobs name the way out, by the messages that Dataflow documents for them."""

import json

import pytest

from rankbeam.pipelines.dataflow.record import DataflowJob
from rankbeam.pipelines.manage.job_progress import JobSnapshot
from rankbeam.transforms.records.counters import Counts

JOB = DataflowJob("2026-01-02_03_04_05-1", "my-project", "us-central1", "r1", "e", "gs://b/out")
MEMORY = ": repeat the command with --worker_machine_type n2-highmem-4"
LITTLE, LOST = "a worker had too little memory", "workers were lost, usually for lack of memory"
QUOTAS = "`gcloud compute regions describe us-central1 --project my-project` shows the quotas of the region"
POOL = "Startup of the worker pool in zone us-central1-f failed to bring up any of the desired 1 workers. "
FAILED = "Workflow failed. Causes: "
PERMISSIONS = "All permissions in IAM role roles/dataflow.worker"
PAGE = "https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project=123"
ACCOUNT = "1-compute@developer.gserviceaccount.com"
GRANT = f"gcloud projects add-iam-policy-binding my-project --member serviceAccount:{ACCOUNT}"
MESSAGES = [
    ("The worker VM had to shut down one or more processes due to lack of memory.", f"{LITTLE}{MEMORY}"),
    ("Out of memory: Killed process 2042 (python) total-vm:28616496kB, anon-rss:25684136kB", f"{LITTLE}{MEMORY}"),
    (
        f"{FAILED}A work item has failed 4 times. Root cause: The worker lost contact with the service.",
        f"{LOST}{MEMORY}",
    ),
    (f"{FAILED}Root cause: SDK harness sdk-0-0 disconnected.", f"{LOST}{MEMORY}"),
    (
        f"{POOL}QUOTA_EXCEEDED: Instance 'beamapp-0' creation failed: Quota 'CPUS' exceeded. Limit: 24.0 in region r.",
        f"repeat the command with a lower --max_num_workers, or with another --region; {QUOTAS}",
    ),
    (
        f"{POOL}QUOTA_EXCEEDED: Quota 'IN_USE_ADDRESSES' exceeded. Limit: 8.0 in region us-central1.",
        f"repeat the command with --no_use_public_ips, or with another --region; {QUOTAS}",
    ),
    (
        f"{POOL}The project quota may have been exceeded or access control policies may be preventing the operation",
        "a lower --max_num_workers",
    ),
    (
        f"{POOL}ZONE_RESOURCE_POOL_EXHAUSTED: Instance 'beamapp-0' creation failed: The zone is exhausted.",
        "or with a --worker_zone that has machines left",
    ),
    (
        f"{FAILED}Compute Engine API has not been used in project 123 before. Enable it by visiting {PAGE}.",
        "`gcloud services enable compute.googleapis.com --project my-project`",
    ),
    (
        f"{FAILED}{PERMISSIONS} should be granted to controller service account {ACCOUNT}.",
        f"grant the role: `{GRANT} --role roles/dataflow.worker`",
    ),
]


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
def test_a_message_that_a_command_mends(message: str, expected: str) -> None:
    (advice,) = JOB.remedies([message, message])
    assert expected in advice
    snapshot = JobSnapshot("failed", Counts(), (message,))
    assert JOB.as_text(snapshot).splitlines()[-1] == advice
    assert json.loads(JOB.as_json(snapshot))["remedies"] == [advice]


def test_an_error_of_the_run_gets_no_such_advice() -> None:
    assert JOB.remedies(["Traceback (most recent call last):\nValueError: no [while running 'Read']"]) == []
