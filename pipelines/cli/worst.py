"""The command that shows the worst answers of a run."""

import click

from rankbeam.pipelines.cli.group import EXPERIMENT_NAME_HELP, main, shown_as
from rankbeam.pipelines.local.messages import messages

_METRIC_HELP = "Metric to sort by; by default the run's first judged metric, or else its first metric."


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("-m", "--metric", metavar="METRIC", help=_METRIC_HELP)
@click.option("-n", "--number", "count", type=click.IntRange(min=1), default=5, show_default=True, metavar="N",
              help="Number of queries.")  # fmt: skip
@click.option("--configuration", metavar="NAME", help="Configuration to show; by default the best one.")
@click.option("--run-id", metavar="ID", help="Id of the run; by default the run that started last.")
@click.option("--experiment-name", metavar="NAME", help=EXPERIMENT_NAME_HELP)
@shown_as()
def worst(
    folder: str,
    metric: str | None,
    count: int,
    configuration: str | None,
    run_id: str | None,
    experiment_name: str | None,
    form: str,
) -> None:
    """Show the queries with the lowest values in the run in DIR, with answers and reference answers.

    DIR may be bigquery://project.dataset.

    \b
    Examples:
      rankbeam worst out/helpdesk
      rankbeam worst out/app -m Faithfulness -n 10
    """
    with messages():
        import json
        from dataclasses import asdict

        from rankbeam.pipelines.results.find import find_run
        from rankbeam.pipelines.show.screen import Screen
        from rankbeam.pipelines.show.worst import as_text, worst_of

        lowest = worst_of(find_run(folder, run_id, experiment_name), configuration, metric, count)
        if form == "json":
            click.echo(json.dumps(asdict(lowest), indent=2, ensure_ascii=False))
        else:
            click.echo(as_text(lowest, Screen.of()))
