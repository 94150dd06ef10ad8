"""Submit an experiment as a job, and follow a job to its end."""

import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, TestOptions

from rankbeam.pipelines.dataflow import package, record, settings
from rankbeam.pipelines.dataflow.record import Job
from rankbeam.pipelines.dataflow.service import DONE, Service, ServiceError, Snapshot, gist, translated
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run import evaluate
from rankbeam.transforms.clients.bigquery.errors import LoadFailed
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 20.0
_LOST_AFTER_S = 600.0
_NOT_LOADED = f"{LoadFailed.__name__}: "


def submit(experiment: Experiment, execution: Run, options: PipelineOptions) -> Job:
    """Submit a run as a job; returns as soon as Dataflow has it.

    Raises:
        InputError: an option is missing, or another job is making this very run.
        RankbeamError: Dataflow does not take the job.
    """
    settings.complete(options, execution, sum(quota.lanes for quota in experiment.pools.values()))
    _refuse_no_job(options)
    _refuse_unwritable(options)
    _refuse_second(experiment.output, execution.run_id, options)
    with tempfile.TemporaryDirectory(prefix="rankbeam-", ignore_cleanup_errors=True) as folder:
        package.stage(options, folder)
        cloud = options.view_as(GoogleCloudOptions)
        with translated(cloud.job_name):
            result = evaluate.submit(experiment, execution, options)
    return Job(
        job_id=result.job_id(),
        project=cloud.project,
        region=cloud.region,
        run_id=execution.run_id,
        experiment=execution.experiment,
        output=experiment.output,
        submitted_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        endpoint=record.endpoint_of(options),
        options=record.kept(options),
    )


def follow(
    job: Job,
    options: PipelineOptions,
    tell: Callable[[Snapshot], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until a job is done; nothing happens to it when this ends early.

    Args:
        job: that was submitted.
        options: Beam's options.
        tell: is given every look at it.
        sleep: waits some seconds.

    Raises:
        InputError: an input turned out to be unusable.
        RunFailed: the job ended otherwise.
    """
    service = Service(job.endpoint, options, _LOST_AFTER_S)
    for pause_s in _pauses():
        try:
            seen = service.look(job)
        except ServiceError as error:
            raise ServiceError(f"{error}; the job goes on by itself") from error
        tell(seen)
        if seen.has_ended:
            break
        sleep(pause_s)
    if seen.state == DONE:
        return
    told = "\n".join(seen.problems)
    if _NOT_LOADED not in told:  # otherwise all files are complete, and the message says how to load them
        evaluate.forget(job.output, job.run_id)
    if (refused := evaluate.find_input_error(RuntimeError(told))) is not None:
        raise refused
    last = f": {gist(seen.problems[-1])}" if seen.problems else ""
    raise evaluate.RunFailed(f"the job ended in state {seen.state}{last}\nsee {job.console}")


def _pauses() -> Iterator[float]:
    pause_s = _FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(_LONGEST_PAUSE_S, pause_s * 1.5)


def _refuse_no_job(options: PipelineOptions) -> None:
    """Make sure that the options submit a job, and do nothing instead of it."""
    if options.view_as(GoogleCloudOptions).template_location:
        raise InputError("--template_location writes a job down instead of submitting it; see deploy/flex_template")
    if options.view_as(TestOptions).dry_run:
        raise InputError("--dry_run submits no job; rankbeam plan says what a run would cost")


def _refuse_unwritable(options: PipelineOptions) -> None:
    """Make sure that the job's own files can be written: Beam tries for minutes, without a word."""
    cloud = options.view_as(GoogleCloudOptions)
    for name in ("temp_location", "staging_location"):
        if place := getattr(cloud, name):
            try:
                files.make_folder(place)
            except InputError as error:
                raise InputError(f"--{name}: {error}") from error


def _refuse_second(output: str, run_id: str, options: PipelineOptions) -> None:
    """Make sure that no other job is making this run: it would lose its rows."""
    try:
        earlier = record.find(output, run_id)
        has_ended = Service(earlier.endpoint, options).look(earlier).has_ended
    except InputError:  # none was submitted, or Dataflow has forgotten it
        return
    if not has_ended:
        way_out = f"wait for it, cancel it ({earlier.cancel}), or choose another --run-id"
        raise InputError(f"the job {earlier.job_id} is making the run {run_id}; {way_out}")
