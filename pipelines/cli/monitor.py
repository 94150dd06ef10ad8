"""The command that compares the latest run with a pinned baseline, night after night."""

import click

from rankbeam.pipelines.cli.group import EXPERIMENT_NAME_HELP, main, shown_as, wide
from rankbeam.pipelines.local.messages import MISSED, leave, messages, warn

_BASELINE_HELP = "The baseline; by default monitor.baseline of the experiment, else its first run."
_TOLERANCE_HELP = "Tolerated fall of any mean; by default the limit of the gates on `monitor`, else 0."
_ALPHA_HELP = "Probability of a false alarm within 90 nights; by default monitor.alpha, else 0.05."


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--run-id", metavar="ID", help="Id of the run in DIR; by default the latest.")
@click.option("--baseline-run-id", metavar="ID", help=_BASELINE_HELP)
@click.option("--tolerance", type=click.FloatRange(min=0), metavar="T", help=_TOLERANCE_HELP)
@click.option("--alpha", type=click.FloatRange(0, 0.5, min_open=True, max_open=True), metavar="A", help=_ALPHA_HELP)
@click.option("--experiment-name", metavar="NAME", help=EXPERIMENT_NAME_HELP)
@shown_as()
@wide
def monitor(
    folder: str,
    run_id: str | None,
    baseline_run_id: str | None,
    tolerance: float | None,
    alpha: float | None,
    experiment_name: str | None,
    form: str,
    wide: bool,
) -> None:
    """Show how far the metrics of the latest run in DIR have moved from a pinned baseline run.

    If both runs have the same queries, they are compared query by query. If each night has fresh queries, confidence
    sequences combine the nights, so that false alarms are rare, no matter how many nights you look at. The rows are
    also written to the table `monitor`.

    Exit status: 0 nothing fell; 3 a whole interval is below the tolerated fall, or the run has no value of a metric;
    2 the input was refused.

    \b
    Examples:
      rankbeam monitor out/production --tolerance 0.02
      rankbeam monitor out/production --baseline-run-id 2026-01-01
    """
    with messages():
        from rankbeam.pipelines.monitor import show
        from rankbeam.pipelines.monitor.changes import monitored
        from rankbeam.pipelines.monitor.show import rebuild, store
        from rankbeam.pipelines.results.find import find_run
        from rankbeam.pipelines.show.screen import Screen
        from rankbeam.transforms.clients.bigquery.read_source import is_table

        run = find_run(folder, run_id, experiment_name)
        result, tolerances = monitored(run, baseline_run_id, alpha), show.Tolerances.of(run, tolerance)
        for warning in result.warnings:
            warn(warning)
        screen = Screen.of(wide=wide)
        click.echo(show.as_json(result, tolerances) if form == "json" else show.as_text(result, tolerances, screen))
        if result.changes and is_table(folder):
            warn("the table monitor is written for runs in folders only")
        elif result.changes:
            store(result, tolerances)
            rebuild(folder)
        if missed := show.summary(result, tolerances):
            leave(missed, MISSED)
