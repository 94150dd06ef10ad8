"""The command line for submitted jobs: submission to Dataflow by `evaluate`, and the commands status and cancel."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from rankbeam.pipelines.cli.group import main, shown_as
from rankbeam.pipelines.local.interrupt import Interrupted, in_background

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

    from rankbeam.pipelines.dataflow.record import DataflowJob
    from rankbeam.pipelines.experiment.experiment import Experiment
    from rankbeam.pipelines.manage.jobs import RunRecord
    from rankbeam.pipelines.portable.job import EngineJob
    from rankbeam.pipelines.results.run import Results
    from rankbeam.transforms.records.run import Run

_CANCELLING_S = 120.0


@main.command()
@click.argument("place", metavar="DIR|JOB")
@click.option("--run-id", metavar="ID", help="Id of the run in DIR; by default the run that was submitted last.")
@click.option("--follow", is_flag=True, help="Show the progress until the job has ended; Ctrl-C leaves the job alone.")
@click.option("--project", metavar="ID", help="The project of JOB.")
@click.option("--region", metavar="REGION", help="The region of JOB.")
@click.option("--dataflow_endpoint", metavar="URL", help="Address of Dataflow's API, instead of the public one.")
@shown_as()
def status(
    place: str,
    run_id: str | None,
    follow: bool,
    project: str | None,
    region: str | None,
    dataflow_endpoint: str | None,
    form: str,
) -> None:
    """Show a job on Dataflow, Flink or another engine: state, rate, time left, failures, cost so far, counters.

    DIR is the output folder of the job; a JOB id needs --project and --region. Exit status: 0 the job is done, 1 it has
    failed or was cancelled, 4 it is waiting or running.

    \b
    Examples:
      rankbeam status gs://bucket/helpdesk/out --follow
      rankbeam status 2026-01-02_03_04_05-123456 --project my-project \\
        --region us-central1
    """
    from rankbeam.pipelines.api.jobs import snapshot_of
    from rankbeam.pipelines.cli import submitted
    from rankbeam.pipelines.manage.job_progress import Watch

    job = submitted.identified(_job(place, run_id, project, region, dataflow_endpoint))
    snapshot = submitted.follow(job) if follow else snapshot_of(job)
    outlook = Watch(job.run, job.run_id).look(snapshot, datetime.now(UTC))
    click.echo((job.as_json if form == "json" else job.as_text)(snapshot, outlook))
    click.get_current_context().exit(submitted.status_of(snapshot))


def on_dataflow(
    experiment: "Experiment", execution: "Run", options: "PipelineOptions", run: "RunRecord", form: str, *, wait: bool
) -> "Results | None":
    """Submit a run and show its job; with `wait`, follow it to its end and return its results.

    Without `wait`, return None while the job goes on.
    """
    from rankbeam.pipelines.dataflow import launch
    from rankbeam.pipelines.manage.jobs import job_name
    from rankbeam.pipelines.results.run import Results
    from rankbeam.pipelines.run.evaluate import release_corpora

    try:
        job = in_background(lambda: launch.submit(experiment, execution, options, run, waits=wait))
    except KeyboardInterrupt:
        name = job_name(execution)
        listing = f"`gcloud dataflow jobs list --filter name={name}`"
        raise Interrupted([], f"a job that was already submitted continues; {listing} shows it") from None
    if form == "json" and not wait:
        click.echo(job.as_json())
    else:
        click.echo(job.as_text(), err=wait)
    if not wait:
        return None
    _follow(job, options)
    release_corpora(experiment, execution)
    return Results(experiment.output, execution.run_id)


def _follow(job: "DataflowJob", options: "PipelineOptions") -> None:
    from rankbeam.pipelines.dataflow import launch
    from rankbeam.pipelines.manage.job_progress import Watch

    watch = Watch(job.run, job.run_id)
    try:
        launch.follow(job, options, lambda snapshot: click.echo(watch.line(snapshot, datetime.now(UTC)), err=True))
    except KeyboardInterrupt:
        next_steps = f"`{job.command('status')}` shows it, `{job.cancel_command}` cancels it"
        raise Interrupted([], f"the job goes on; {next_steps}") from None


def _job(
    place: str, run_id: str | None, project: str | None, region: str | None, endpoint: str | None
) -> "DataflowJob | EngineJob":
    from rankbeam.pipelines.api.jobs import of_record
    from rankbeam.pipelines.dataflow import record
    from rankbeam.pipelines.manage import jobs

    if not record.is_job_id(place):
        return of_record(jobs.find(place, run_id), place, endpoint)
    if project is None or region is None:
        raise click.UsageError("a job id needs --project and --region")
    return record.DataflowJob(place, project, region, endpoint=endpoint)


@main.command()
@click.argument("place", metavar="DIR")
@click.option("--run-id", metavar="ID", help="Id of the run in DIR; by default the run that was submitted last.")
def cancel(place: str, run_id: str | None) -> None:
    """Cancel the job that writes to DIR, on Dataflow, Flink, or another engine, and delete its partial rows.

    The ledger keeps the answers received so far: if you run `rankbeam evaluate` again, it continues without paying for
    them twice.

    \b
    Example:
      rankbeam cancel gs://bucket/helpdesk/out
    """
    from rankbeam.pipelines.manage import jobs
    from rankbeam.pipelines.portable.job import is_record_of_engine

    record = jobs.find(place, run_id)
    outcome = _on_engine(record, place) if is_record_of_engine(record) else _on_dataflow(record, place)
    click.echo(outcome)


def _on_engine(record: dict[str, object], place: str) -> str:
    from rankbeam.pipelines.manage import jobs
    from rankbeam.pipelines.portable.job import EngineJob
    from rankbeam.pipelines.portable.launch import recovery_hint
    from rankbeam.pipelines.portable.service import JobServerError
    from rankbeam.pipelines.run.evaluate import delete_rows
    from rankbeam.transforms.records.errors import InputError

    job = EngineJob.of_record(record, place)
    if job.is_at_work():
        if not job.cancel(_CANCELLING_S):
            problem = f"was asked to end, but has not ended within {_CANCELLING_S:.0f} s"
            raise JobServerError(f"the job {job.job_name} {problem}")
    elif not job.is_cancelled or jobs.has_rows(job.output, job.run_id):  # else its rows were left when it was cancelled
        message = f"the job {job.job_name} has ended ({job.state()}); there is nothing to cancel"
        raise InputError(message, path=place)
    delete_rows(job.output, job.run_id)
    return f"cancelled {job.job_name}; {recovery_hint(job)}"


def _on_dataflow(record: dict[str, object], place: str) -> str:
    from rankbeam.pipelines.dataflow.record import DataflowJob
    from rankbeam.pipelines.dataflow.service import DataflowService
    from rankbeam.transforms.records.errors import InputError

    job = DataflowJob.of_record(record, place)
    service = DataflowService(job.endpoint)
    job = service.with_job_id(job)
    if (snapshot := service.snapshot(job)).has_ended:
        raise InputError(f"the job {job.job_id} has ended ({snapshot.state}); there is nothing to cancel", path=place)
    service.cancel(job)
    return f"asked Dataflow to cancel {job.job_id}; `rankbeam status {place}` shows its state"
