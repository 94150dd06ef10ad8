"""The command that lists the finished runs of an output folder."""

import click

from rankbeam.pipelines.cli.group import TABLE_OR_JSON, main, wide
from rankbeam.pipelines.run.messages import messages


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--format", "form", type=TABLE_OR_JSON, default="table", show_default=True)
@wide
def runs(folder: str, form: str, wide: bool) -> None:
    """List the finished runs in DIR, the output folder of `rankbeam evaluate`, the latest last.

    The best configuration is that of each run's first metric. The state is `done`, or `missed` where a gate was missed,
    too many calls failed or `max_cost` was reached. DIR may be bigquery://project.dataset.

    \b
    Example:
      rankbeam runs out/helpdesk
    """
    with messages():
        from rankbeam.pipelines.results.find import finished_runs
        from rankbeam.pipelines.show import runs as listing
        from rankbeam.pipelines.show.screen import Screen

        found = finished_runs(folder)
        click.echo(listing.as_json(found) if form == "json" else listing.as_text(found, Screen.of(wide=wide)))
