"""The commands for batch jobs: `rankbeam batch list | collect | cancel`."""

import click

from rankbeam.pipelines.cli.group import main, shown_as
from rankbeam.pipelines.local.messages import log_to_stderr, warn
from rankbeam.transforms.records.errors import pluralize


@main.group()
def batch() -> None:
    """Show batch jobs, collect their answers, or cancel them.

    Services with `batch:` make calls in jobs, at half price. A run waits for its jobs; if it is interrupted, they
    continue, and the next run collects their answers.
    """


@batch.command("list")
@click.argument("place", metavar="OUT")
@shown_as()
def list_jobs(place: str, form: str) -> None:
    """List the batch jobs of OUT: an output folder, a ledger's folder, or an experiment.

    \b
    Example:
      rankbeam batch list out/helpdesk
    """
    from rankbeam.pipelines.manage.batch import LedgerJobs
    from rankbeam.pipelines.show.tabular import Screen

    jobs = LedgerJobs.of(place)
    click.echo(jobs.as_json() if form == "json" else jobs.as_text(Screen.of()))


@batch.command()
@click.argument("place", metavar="OUT")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
def collect(place: str, jobs: tuple[str, ...]) -> None:
    """Write the answers of batch jobs that have ended to the ledger of OUT, without waiting for other jobs.

    While a run uses the service, this command waits for the run, which collects the answers itself.

    \b
    Examples:
      rankbeam batch collect out/helpdesk
      rankbeam batch collect out/helpdesk rankbeam-v1-3fa9c2d14be07a55
    """
    from rankbeam.pipelines.manage.batch import LedgerJobs

    with log_to_stderr():
        warn(*LedgerJobs.of(place).collect(jobs))
    open_jobs = LedgerJobs.of(place).named(())
    click.echo(f"{pluralize(len(open_jobs), 'batch job')} left open" if open_jobs else "no batch job is open")


@batch.command()
@click.argument("place", metavar="OUT")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
def cancel(place: str, jobs: tuple[str, ...]) -> None:
    """Cancel open batch jobs of OUT; without JOB, all of them.

    Answers that a job already has are charged, and the next run or `rankbeam batch collect` uses them. A job that the
    service no longer has is forgotten, and the next run makes its calls again.

    \b
    Example:
      rankbeam batch cancel out/helpdesk rankbeam-v1-3fa9c2d14be07a55
    """
    from rankbeam.pipelines.manage.batch import LedgerJobs

    cancelled = LedgerJobs.of(place).cancel(jobs)
    for record in cancelled:
        click.echo(f"{'cancelled' if record.is_open else 'forgot'} {record.name}")
    if not cancelled:
        click.echo("no batch job is open")
