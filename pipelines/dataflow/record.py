"""What is kept of a submitted job beside the output it writes: enough to find it again, and no secret."""

import json
import re
from dataclasses import asdict, dataclass, field
from typing import Any

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

_FOLDER = "jobs"
_MOST_NAMED = 20
_JOB_ID = re.compile(r"\d{4}-\d\d-\d\d_\d\d_\d\d_\d\d-\d+")
_KEPT = (
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
)  # fmt: skip  options that say where and how a job runs; any other may be a secret


@dataclass(frozen=True)
class Job:
    """A job that was submitted.

    Attributes:
        job_id: Dataflow's name for it.
        project, region: where it runs.
        run_id, experiment: what it does; empty where only the job is known.
        output: the folder that it writes to.
        submitted_at: in UTC, as ISO 8601 has it.
        endpoint: of Dataflow's API, where that is not Google's own.
        options: how it runs.
    """

    job_id: str
    project: str
    region: str
    run_id: str = ""
    experiment: str = ""
    output: str = ""
    submitted_at: str = ""
    endpoint: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def console(self) -> str:
        """Its page in Google Cloud's console."""
        return f"https://console.cloud.google.com/dataflow/jobs/{self.region}/{self.job_id}?project={self.project}"

    @property
    def cancel(self) -> str:
        """The command that cancels it."""
        return f"gcloud dataflow jobs cancel {self.job_id} --project {self.project} --region {self.region}"


def endpoint_of(options: PipelineOptions) -> str | None:
    """The endpoint of Dataflow's API, where that is not Google's own."""
    endpoint: str = options.view_as(GoogleCloudOptions).dataflow_endpoint
    return None if endpoint == GoogleCloudOptions.DATAFLOW_ENDPOINT else endpoint


def kept(options: PipelineOptions) -> dict[str, Any]:
    """The options that are kept of a job.

    >>> kept(PipelineOptions(["--runner=DataflowRunner", "--num_workers=2", "--gbek=type:gcpsecret"]))
    {'runner': 'DataflowRunner', 'num_workers': 2}
    """
    given = options.get_all_options(drop_default=True)
    return {name: given[name] for name in _KEPT if given.get(name) is not None}


def is_job_id(text: str) -> bool:
    """Whether that is how Dataflow names jobs.

    >>> is_job_id("2026-01-02_03_04_05-1234567890"), is_job_id("out/helpdesk")
    (True, False)
    """
    return _JOB_ID.fullmatch(text) is not None


def keep(job: Job) -> None:
    """Write a job down beside its output.

    Raises:
        InputError: it cannot be written.
    """
    files.write(_path(job.output, job.run_id), json.dumps(asdict(job), indent=2).encode())


def find(output: str, run_id: str | None = None) -> Job:
    """The job of a run.

    Args:
        output: the folder of all tables.
        run_id: which run; None for the one that was submitted last.

    Raises:
        InputError: no job of such a run was submitted from here.
    """
    try:
        paths = files.expand(_path(output, "*"))
    except InputError as error:
        raise InputError("holds no submitted job (no jobs/*.json)", path=output) from error
    by_run = {path.replace("\\", "/").rpartition("/")[2].removesuffix(".json"): path for path in paths}
    if run_id is None:
        return max(map(_read, paths), key=lambda job: job.submitted_at)
    if run_id not in by_run:
        named = ", ".join(sorted(by_run)[-_MOST_NAMED:])
        raise InputError(f"holds no job of a run {run_id!r}; there are: {named}", path=output)
    return _read(by_run[run_id])


def _path(output: str, run_id: str) -> str:
    return files.join(output, _FOLDER, f"{run_id}.json")


def _read(path: str) -> Job:
    try:
        return Job(**json.loads(files.read_all(path)))
    except (TypeError, ValueError) as error:
        raise InputError(f"is no record of a job: {error}", path=path) from error
