"""The command that cancels a job."""

import click

from rankbeam.pipelines.cli.group import main
from rankbeam.pipelines.local.messages import messages

_CANCELLING_S = 120.0


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
    with messages():
        from rankbeam.pipelines.manage import jobs
        from rankbeam.pipelines.portable.job import is_record_of_engine

        record = jobs.find(place, run_id)
        outcome = _on_engine(record, place) if is_record_of_engine(record) else _on_dataflow(record, place)
        click.echo(outcome)


def _on_engine(record: dict[str, object], place: str) -> str:
    from rankbeam.pipelines.manage import jobs
    from rankbeam.pipelines.portable.job import of_record
    from rankbeam.pipelines.portable.launch import recovery_hint
    from rankbeam.pipelines.portable.service import JobServerError
    from rankbeam.pipelines.run.evaluate import delete_rows
    from rankbeam.transforms.records.errors import InputError

    job = of_record(record, place)
    if not job.is_at_work():
        if not job.is_cancelled or jobs.has_rows(job.output, job.run_id):
            message = f"the job {job.job_name} has ended ({job.state()}); there is nothing to cancel"
            raise InputError(message, path=place)
        job.withdraw_stop()  # the process that cancelled it did not wait for its end, and left its rows
    elif not job.cancel(_CANCELLING_S):
        raise JobServerError(f"the job {job.job_name} was asked to end, but has not ended within {_CANCELLING_S:.0f} s")
    delete_rows(job.output, job.run_id)
    return f"cancelled {job.job_name}; {recovery_hint(job)}"


def _on_dataflow(record: dict[str, object], place: str) -> str:
    from rankbeam.pipelines.dataflow.record import of_record
    from rankbeam.pipelines.dataflow.service import DataflowService
    from rankbeam.transforms.records.errors import InputError

    job = of_record(record, place)
    service = DataflowService(job.endpoint)
    job = service.identified(job)
    if (snapshot := service.snapshot(job)).has_ended:
        raise InputError(f"the job {job.job_id} has ended ({snapshot.state}); there is nothing to cancel", path=place)
    service.cancel(job)
    return f"asked Dataflow to cancel {job.job_id}; `rankbeam status {place}` shows its state"
