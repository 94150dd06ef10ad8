"""The command that writes the HTML report of a finished run."""

from typing import TYPE_CHECKING

import click

from rankbeam.pipelines.cli.group import EXPERIMENT_NAME_HELP, main
from rankbeam.pipelines.local.messages import FAILED, leave, messages, warn

if TYPE_CHECKING:
    from rankbeam.pipelines.report.compare import Against
    from rankbeam.pipelines.results.run import Results

_BASELINE_HELP = "Also show differences from the configurations of the same names in a run of this folder."
_BASELINE_RUN_ID_HELP = "Id of the run in DIR2, or, without DIR2, in DIR; by default the experiment's latest other run."


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--run-id", metavar="ID", help="Id of the run; by default the run that started last.")
@click.option("--experiment-name", metavar="NAME", help=EXPERIMENT_NAME_HELP)
@click.option("--baseline", metavar="DIR2", help=_BASELINE_HELP)
@click.option("--baseline-run-id", metavar="ID", help=_BASELINE_RUN_ID_HELP)
@click.option("--output", metavar="FILE", help="Write to this file instead of DIR/report.html.")
def report(
    folder: str,
    run_id: str | None,
    experiment_name: str | None,
    baseline: str | None,
    baseline_run_id: str | None,
    output: str | None,
) -> None:
    """Write the HTML report of a finished run in DIR, the output folder of `rankbeam evaluate`.

    The report is one file that needs no network: leaderboard, comparisons, sweeps, curves, the trend, the queries with
    the largest differences and their rankings, slices, failures, latency and cost, and how the numbers were computed.
    DIR may be bigquery://project.dataset; then --output names the file. For a job that no command waited for, the first
    report also writes results.duckdb, loads the run into BigQuery if the job could not, and deletes corpora that were
    to exist until the end of the run.

    \b
    Examples:
      rankbeam report out/helpdesk
      rankbeam report out/today --baseline out/yesterday
      rankbeam report bigquery://my-project.search --output report.html
    """
    with messages():
        from rankbeam.pipelines import report as page
        from rankbeam.pipelines.compare.compare import pair_of_runs
        from rankbeam.transforms.clients.bigquery.read_source import is_table

        if output is None and is_table(folder):
            raise click.UsageError("the report of a run in BigQuery needs a file: add --output FILE")
        unfinished: list[str] = []
        if not is_table(folder):
            from rankbeam.pipelines.cli.submitted import finish_ended

            unfinished = finish_ended(folder, run_id)
        run, other = pair_of_runs(folder, run_id, baseline, baseline_run_id, experiment_name)
        click.echo(page.write(run, output, None if other is None else _against(run, other)))
        if unfinished:
            leave("; ".join(unfinished), FAILED)


def _against(run: "Results", other: "Results") -> "Against":
    from rankbeam.pipelines.compare import compare, show
    from rankbeam.pipelines.report.compare import Against

    compared = compare.compare(run, other, compare.ComparisonQuestion())
    for warning in compared.warnings():
        warn(warning)
    table = show.table(compared)
    about = f"{other.named}, in {other.output}"
    return Against(about, table.columns, table.rows, table.left, show.sentences(compared))
