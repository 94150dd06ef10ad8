"""Submit an experiment as a job, and follow a job to its end."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, TestOptions

from rankbeam.pipelines.dataflow import package, record
from rankbeam.pipelines.dataflow.record import DataflowJob
from rankbeam.pipelines.dataflow.service import DONE, DataflowError, DataflowService, translate_errors
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.local.runner import find_input_error
from rankbeam.pipelines.manage import job_progress
from rankbeam.pipelines.manage.job_progress import JobSnapshot, gist
from rankbeam.pipelines.manage.jobs import RunRecord
from rankbeam.pipelines.run import evaluate
from rankbeam.transforms.clients.bigquery.errors import LoadFailed
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

_NOT_LOADED = f"{LoadFailed.__name__}: "


def submit(
    experiment: Experiment, execution: Run, options: PipelineOptions, run: RunRecord, *, waits: bool
) -> DataflowJob:
    """Submit a run as a job; return as soon as Dataflow has accepted it."""
    package.set_defaults(options, execution, experiment.calls.lanes)
    _refuse_no_job(options)
    _refuse_unwritable(options)
    with tempfile.TemporaryDirectory(prefix="rankbeam-", ignore_cleanup_errors=True) as folder:
        package.stage(options, folder)
        cloud = options.view_as(GoogleCloudOptions)
        with translate_errors(cloud.job_name, cloud.project):
            result = evaluate.submit(experiment, execution, options, waits=waits)
    job = replace(record.of_run(experiment, execution, options, run), job_id=result.job_id())
    job.save()
    return job


def follow(
    job: DataflowJob,
    options: PipelineOptions,
    show: Callable[[JobSnapshot], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until a job is done, and show its snapshots; the job continues if this process stops earlier."""
    service = DataflowService(job.endpoint, options, job_progress.LOST_AFTER_S)
    try:
        snapshot = job_progress.follow(lambda: service.snapshot(job), show, sleep)
    except DataflowError as error:
        raise DataflowError(f"{error}; the job continues") from error
    if snapshot.state == DONE:
        return
    messages = "\n".join(snapshot.problems)
    if _NOT_LOADED not in messages:  # otherwise all files are complete, and the message says how to load them
        evaluate.delete_rows(job.output, job.run_id)
    if (refused := find_input_error(RuntimeError(messages))) is not None:
        raise refused
    last = f": {gist(snapshot.problems[-1])}" if snapshot.problems else ""
    advice = "".join(f"\n{advice}" for advice in job.remedies(snapshot.problems))
    raise evaluate.RunFailed(f"the job ended in state {snapshot.state}{last}{advice}\nsee {job.page()}")


def _refuse_no_job(options: PipelineOptions) -> None:
    """Refuse options with which Beam does not submit a job."""
    if options.view_as(GoogleCloudOptions).template_location:
        raise InputError("--template_location writes a template instead of submitting a job; see deploy/flex_template")
    if options.view_as(TestOptions).dry_run:
        raise InputError("--dry_run is Beam's; --dry-run describes the job that would be submitted")


def _refuse_unwritable(options: PipelineOptions) -> None:
    """Refuse folders in which the job's own files cannot be written: Beam would retry silently for minutes."""
    cloud = options.view_as(GoogleCloudOptions)
    for name in ("temp_location", "staging_location"):
        if folder := getattr(cloud, name):
            try:
                files.make_writable_folder(folder)
            except InputError as error:
                raise InputError(f"--{name}: {error}") from error
