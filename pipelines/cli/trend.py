"""The command that shows a metric over the runs of an experiment."""

import click

from rankbeam.pipelines.cli.group import EXPERIMENT_NAME_HELP, main, shown_as, wide
from rankbeam.pipelines.local.messages import messages


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("-m", "--metric", metavar="METRIC", help="Metric to show; by default the first one of the latest run.")
@click.option("-n", "--number", "count", type=click.IntRange(min=1), default=30, show_default=True, metavar="N",
              help="Number of latest runs to show.")  # fmt: skip
@click.option("--experiment-name", metavar="NAME", help=EXPERIMENT_NAME_HELP)
@shown_as()
@wide
def trend(folder: str, metric: str | None, count: int, experiment_name: str | None, form: str, wide: bool) -> None:
    """Show a metric over the latest runs in DIR, one row per run, the latest last.

    Only runs of one experiment on the same dataset are shown. A note appears where the judge of a metric changed.

    \b
    Example:
      rankbeam trend out/production -m Faithfulness
    """
    with messages():
        import json

        from rankbeam.pipelines.results.find import find_run
        from rankbeam.pipelines.show.runs import trend_of
        from rankbeam.pipelines.show.screen import Screen

        shown = trend_of(find_run(folder, None, experiment_name), metric, count)
        if form == "json":
            click.echo(json.dumps(shown.as_document(), indent=2, ensure_ascii=False))
        else:
            click.echo(shown.as_text(Screen.of(wide=wide)))
