"""The commands that show a finished run or copy it to a tracker: report, trend, worst and log."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from rankbeam.pipelines.cli.group import EXPERIMENT_NAME_HELP, NamedRun, main, of_run, shown_as, wide
from rankbeam.pipelines.local.messages import FAILED, leave, warn
from rankbeam.transforms.records.errors import json_text

if TYPE_CHECKING:
    from rankbeam.pipelines.report.compare import ComparisonSection
    from rankbeam.pipelines.results.run import Results

_BASELINE_HELP = "Also show differences from the configurations of the same names in a run of this folder."
_BASELINE_RUN_ID_HELP = "Id of the run in DIR2, or, without DIR2, in DIR; by default the experiment's latest other run."
_METRIC_HELP = "Metric to sort by; by default the run's first judged metric, or else its first metric."
_MLFLOW_HELP = "MLflow's tracking store, such as sqlite:///mlflow.db or http://HOST:PORT."
_VERTEX_HELP = "Vertex AI Experiments of a project and region: projects/P/locations/L."


@main.command()
@click.argument("folder", metavar="DIR")
@of_run
@click.option("--baseline", metavar="DIR2", help=_BASELINE_HELP)
@click.option("--baseline-run-id", metavar="ID", help=_BASELINE_RUN_ID_HELP)
@click.option("--output", metavar="FILE", help="Write to this file instead of DIR/report.html.")
def report(named: NamedRun, baseline: str | None, baseline_run_id: str | None, output: str | None) -> None:
    """Write the HTML report of a finished run in DIR, the output folder of `rankbeam evaluate`.

    The report is one file that needs no network: leaderboard, comparisons, sweeps, curves, the trend, the queries with
    the largest differences and their rankings, slices, failures, latency and cost, and how the numbers were computed.
    DIR may be bigquery://project.dataset; then --output names the file. For a job that no command waited for, the first
    report also writes results.duckdb, loads the run into BigQuery if the job could not, and deletes the run's corpora
    with `keep: run`.

    \b
    Examples:
      rankbeam report out/helpdesk
      rankbeam report out/today --baseline out/yesterday
      rankbeam report bigquery://my-project.search --output report.html
    """
    from rankbeam.pipelines import report as page
    from rankbeam.transforms.clients.bigquery.names import is_table

    if output is None and is_table(named.folder):
        raise click.UsageError("the report of a run in BigQuery needs a file: add --output FILE")
    unfinished: list[str] = []
    if not is_table(named.folder):
        from rankbeam.pipelines.cli.submitted import finish_ended

        unfinished = finish_ended(named.folder, named.run_id)
    run, other = named.with_other(baseline, baseline_run_id)
    click.echo(page.write(run, output, None if other is None else _against(run, other)))
    if unfinished:
        leave("; ".join(unfinished), FAILED)


def _against(run: "Results", other: "Results") -> "ComparisonSection":
    from rankbeam.pipelines.compare import compare, show
    from rankbeam.pipelines.report.compare import ComparisonSection

    compared = compare.compare(run, other, compare.ComparisonQuestion())
    warn(*compared.warnings())
    table = show.table(compared)
    about = f"{other.named}, in {other.output}"
    return ComparisonSection(about, table.columns, table.rows, table.left, show.sentences(compared))


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
    from rankbeam.pipelines.results.find import find_run
    from rankbeam.pipelines.show.runs import trend_of
    from rankbeam.pipelines.show.tabular import Screen

    shown = trend_of(find_run(folder, None, experiment_name), metric, count)
    if form == "json":
        click.echo(json_text(shown.as_document()))
    else:
        click.echo(shown.as_text(Screen.of(wide=wide)))


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("-m", "--metric", metavar="METRIC", help=_METRIC_HELP)
@click.option("-n", "--number", "count", type=click.IntRange(min=1), default=5, show_default=True, metavar="N",
              help="Number of queries.")  # fmt: skip
@click.option("--configuration", metavar="NAME", help="Configuration to show; by default the best one.")
@of_run
@shown_as()
def worst(named: NamedRun, metric: str | None, count: int, configuration: str | None, form: str) -> None:
    """Show the queries with the worst values in the run in DIR, with answers and reference answers.

    DIR may be bigquery://project.dataset.

    \b
    Examples:
      rankbeam worst out/helpdesk
      rankbeam worst out/app -m Faithfulness -n 10
    """
    from rankbeam.pipelines.show.tabular import Screen
    from rankbeam.pipelines.show.worst import as_text, worst_of

    lowest = worst_of(named.find(), configuration, metric, count)
    if form == "json":
        click.echo(json_text(asdict(lowest)))
    else:
        click.echo(as_text(lowest, Screen.of()))


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--mlflow", metavar="URI", help=_MLFLOW_HELP)
@click.option("--vertex", metavar="LOCATION", help=_VERTEX_HELP)
@click.option(
    "--name",
    metavar="NAME",
    help="Name of the experiment in the tracker; by default the run's experiment, in lower case.",
)
@of_run
@click.option("--api-endpoint", metavar="ADDRESS", help="Address of Vertex AI, instead of the public one.")
def log(named: NamedRun, mlflow: str | None, vertex: str | None, name: str | None, api_endpoint: str | None) -> None:
    """Copy the run in DIR to MLflow or to Vertex AI Experiments: one run there for each configuration.

    Parameters, means and the ends of their intervals are copied, under names such as nDCG_at_10 and nDCG_at_10_ci_low.
    Copying a run again creates no duplicate. DIR may be bigquery://project.dataset.

    \b
    Examples:
      rankbeam log out/helpdesk --mlflow sqlite:///mlflow.db
      rankbeam log out/helpdesk --vertex projects/my-project/locations/us-central1
    """
    if (mlflow is None) == (vertex is None):
        raise click.UsageError("name one tracker, --mlflow URI or --vertex LOCATION")
    from rankbeam.pipelines.show.trials import trials_of
    from rankbeam.transforms.clients.tracking import log_to_mlflow, log_to_vertex

    run = named.find()
    experiment, trials = name or run.experiment.lower(), trials_of(run)
    if mlflow is not None:
        count = log_to_mlflow(mlflow, experiment, trials)
    else:
        count = log_to_vertex(str(vertex), experiment, trials, api_endpoint)
    click.echo(f"{run.named}: {count} of {len(trials)} configurations written to the experiment {experiment!r}")
