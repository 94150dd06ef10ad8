"""The command that writes the HTML report of a finished run."""

import click

from rankbeam.pipelines.cli.group import EXPERIMENT_NAME_HELP, main
from rankbeam.pipelines.run.messages import messages


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--run-id", metavar="ID", help="Which run; by default the one that started last.")
@click.option("--experiment-name", metavar="NAME", help=EXPERIMENT_NAME_HELP)
@click.option("--output", metavar="FILE", help="Write to this file instead of DIR/report.html.")
def report(folder: str, run_id: str | None, experiment_name: str | None, output: str | None) -> None:
    """Write the HTML report of a finished run in DIR, the output folder of `rankbeam evaluate`.

    The report is one file that needs no network: leaderboard, comparisons, sweeps, the queries with the largest
    differences and their rankings, slices, failures, and how the numbers were computed. DIR may be
    bigquery://project.dataset; then --output names the file.

    \b
    Example:
      rankbeam report out/helpdesk
      rankbeam report bigquery://my-project.search --output report.html
    """
    with messages():
        from rankbeam.pipelines import report as page
        from rankbeam.pipelines.results.find import find_run
        from rankbeam.transforms.clients.bigquery.read_source import is_table

        if output is None and is_table(folder):
            raise click.UsageError("the report of a run in BigQuery needs a file: add --output FILE")
        click.echo(page.write(find_run(folder, run_id, experiment_name), output))
