"""Jobs on Dataflow on the command line: submission by `evaluate`, and the command `status`."""

from typing import TYPE_CHECKING

import click

from rankbeam.pipelines.cli.group import main, shown_as
from rankbeam.pipelines.local.interrupt import Interrupted, in_background
from rankbeam.pipelines.local.messages import FAILED, messages

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

    from rankbeam.pipelines.dataflow.record import DataflowJob
    from rankbeam.pipelines.experiment.experiment import Experiment
    from rankbeam.pipelines.portable.job import EngineJob
    from rankbeam.pipelines.results.run import Results
    from rankbeam.transforms.records.run import Run


@main.command()
@click.argument("place", metavar="DIR|JOB")
@click.option("--run-id", metavar="ID", help="Which run of DIR; by default the one that was submitted last.")
@click.option("--project", metavar="ID", help="The project of JOB.")
@click.option("--region", metavar="REGION", help="The region of JOB.")
@click.option("--dataflow_endpoint", metavar="URL", help="Another address of Dataflow's API.")
@shown_as()
def status(
    place: str, run_id: str | None, project: str | None, region: str | None, dataflow_endpoint: str | None, form: str
) -> None:
    """Show the state and the counters of a job on Dataflow, Flink or another engine.

    DIR is the output folder of the job; a JOB id needs --project and --region. The exit status is 1 if the job has
    failed or was cancelled.

    \b
    Examples:
      rankbeam status gs://bucket/helpdesk/out
      rankbeam status 2026-01-02_03_04_05-123456 --project my-project \\
        --region us-central1
    """
    with messages():
        from dataclasses import replace

        from rankbeam.pipelines.dataflow import show
        from rankbeam.pipelines.dataflow.service import DataflowService
        from rankbeam.pipelines.portable import show as show_engine

        if (on_engine := _on_engine(place, run_id)) is not None:
            now = on_engine.snapshot()
            click.echo(show_engine.as_json(on_engine, now) if form == "json" else show_engine.as_text(on_engine, now))
            has_failed = now.has_failed
        else:
            job = _job(place, run_id, project, region)
            job = job if dataflow_endpoint is None else replace(job, endpoint=dataflow_endpoint)
            snapshot = DataflowService(job.endpoint).snapshot(job)
            click.echo(show.as_json(job, snapshot) if form == "json" else show.as_text(job, snapshot))
            has_failed = snapshot.has_failed
    if has_failed:
        click.get_current_context().exit(FAILED)


def on_dataflow(
    experiment: "Experiment", execution: "Run", options: "PipelineOptions", form: str, *, wait: bool
) -> "Results | None":
    """Submit a run and show its job; with `wait`, follow it to its end and return its results.

    Without `wait` the result is None, and the job goes on.
    """
    from rankbeam.pipelines.dataflow import launch, record, show
    from rankbeam.pipelines.manage.jobs import job_name
    from rankbeam.pipelines.results.run import Results
    from rankbeam.pipelines.run.evaluate import release_corpora

    try:
        job = in_background(lambda: launch.submit(experiment, execution, options, waits=wait))
    except KeyboardInterrupt:
        name = job_name(execution)
        listing = f"`gcloud dataflow jobs list --filter name={name}`"
        raise Interrupted([], f"a job that was already submitted goes on; {listing} shows it") from None
    if form == "json" and not wait:
        click.echo(show.as_json(job))
    else:
        click.echo(show.submitted(job), err=wait)
    record.save(job)
    if not wait:
        return None
    _follow(job, experiment, options)
    release_corpora(experiment, execution)
    return Results(experiment.output, execution.run_id)


def _follow(job: "DataflowJob", experiment: "Experiment", options: "PipelineOptions") -> None:
    from rankbeam.pipelines.dataflow import launch, show

    status_line = show.DataflowStatusLine(len(experiment.local), len(experiment.evaluation.configurations))
    try:
        launch.follow(job, options, lambda snapshot: click.echo(status_line.line(snapshot), err=True))
    except KeyboardInterrupt:
        raise Interrupted([], f"the job goes on; `{show.command(job)}` shows it, `{job.cancel}` cancels it") from None


def _on_engine(place: str, run_id: str | None) -> "EngineJob | None":
    """The job of a folder, where it is not on Dataflow."""
    from rankbeam.pipelines.dataflow.record import is_job_id
    from rankbeam.pipelines.manage import jobs
    from rankbeam.pipelines.portable.job import is_record_of_engine, of_record

    if is_job_id(place):
        return None
    record = jobs.find(place, run_id)
    return of_record(record, place) if is_record_of_engine(record) else None


def _job(place: str, run_id: str | None, project: str | None, region: str | None) -> "DataflowJob":
    from rankbeam.pipelines.dataflow import record

    if not record.is_job_id(place):
        return record.find(place, run_id)
    if project is None or region is None:
        raise click.UsageError("a job id needs --project and --region")
    return record.DataflowJob(place, project, region)
