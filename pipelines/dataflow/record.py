"""The record of a submitted job beside its output: enough to find the job again, and no secrets."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from rankbeam.pipelines.dataflow.remedies import remedies_of
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.manage.cluster_job import ClusterJob
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.transforms.records.run import Run

_JOB_ID = re.compile(r"\d{4}-\d\d-\d\d_\d\d_\d\d_\d\d-\d+")
_RECORDED = (
    "runner",
    "job_name",
    "labels",
    "temp_location",
    "staging_location",
    "service_account_email",
    "num_workers",
    "max_num_workers",
    "autoscaling_algorithm",
    "machine_type",
    "disk_size_gb",
    "network",
    "subnetwork",
    "use_public_ips",
    "worker_zone",
    "worker_region",
    "sdk_container_image",
    "number_of_worker_harness_threads",
    "experiments",
    "dataflow_service_options",
    "flexrs_goal",
    "setup_file",
    "requirements_file",
)  # fmt: skip  options that say where and how a job runs; other options may hold secrets


@dataclass(frozen=True)
class DataflowJob(ClusterJob):
    """A submitted job.

    `run_id` and `experiment` are empty if only the job is known. `job_id` is empty if a template's launcher recorded
    the job before Dataflow started it. `submitted_at` and `finished_at` are in UTC.
    """

    page_name: ClassVar[str] = "console"
    job_id: str
    project: str
    region: str
    run_id: str = ""
    experiment: str = ""
    output: str = ""
    submitted_at: str = ""
    endpoint: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    job_name: str = ""
    run: RunRecord | None = None
    finished_at: str = ""

    @property
    def title(self) -> str:
        return self.job_id or self.job_name

    def page(self) -> str:
        """The job's page in Google Cloud's console, or the list of jobs if its id is not known."""
        place = f"/{self.region}/{self.job_id}" if self.job_id else ""
        return f"https://console.cloud.google.com/dataflow/jobs{place}?project={self.project}"

    @property
    def cancel_command(self) -> str:
        if not self.job_id:
            return self.command("cancel")
        return f"gcloud dataflow jobs cancel {self.job_id} --project {self.project} --region {self.region}"

    def remedies(self, problems: Iterable[str]) -> list[str]:
        return remedies_of(problems, self.project, self.region)


def endpoint_of(options: PipelineOptions) -> str | None:
    """The address of Dataflow's API; None for Google's own."""
    endpoint: str = options.view_as(GoogleCloudOptions).dataflow_endpoint
    return None if endpoint == GoogleCloudOptions.DATAFLOW_ENDPOINT else endpoint


def recorded_options(options: PipelineOptions) -> dict[str, Any]:
    """Options that belong in a job's record.

    >>> recorded_options(PipelineOptions(["--runner=DataflowRunner", "--num_workers=2", "--gbek=type:gcpsecret"]))
    {'runner': 'DataflowRunner', 'num_workers': 2}
    """
    options_set = options.get_all_options(drop_default=True)
    return {name: options_set[name] for name in _RECORDED if options_set.get(name) is not None}


def is_job_id(text: str) -> bool:
    """Return whether a text looks like a Dataflow job id.

    >>> is_job_id("2026-01-02_03_04_05-1234567890"), is_job_id("out/helpdesk")
    (True, False)
    """
    return _JOB_ID.fullmatch(text) is not None


def of_run(experiment: Experiment, execution: Run, options: PipelineOptions, run: RunRecord) -> DataflowJob:
    """The record of a job that is submitted now, without its id."""
    cloud = options.view_as(GoogleCloudOptions)
    return DataflowJob(
        job_id="",
        project=cloud.project,
        region=cloud.region,
        run_id=execution.run_id,
        experiment=execution.experiment,
        output=experiment.output,
        submitted_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        endpoint=endpoint_of(options),
        options=recorded_options(options),
        job_name=cloud.job_name,
        run=run,
    )
