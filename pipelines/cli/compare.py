"""The commands that compare configurations of finished runs, or rankings without judgements: compare and rbo."""

from typing import Any

import click

from rankbeam.pipelines.cli.group import FloatRange, NamedRun, main, of_run, shown_as, wide, with_standard_input
from rankbeam.pipelines.local.messages import warn

_FORMATS = click.Choice(["table", "json", "csv", "markdown", "latex"])
_BASELINE_HELP = "The configuration that the others are compared with, in DIR2 if you name it."
_METRIC_HELP = "Compare only by this metric. Repeatable."
_SLICE_HELP = (
    'Compare on this slice: "intent=how_to", or "intent" for each of its values; "all" by default. Repeatable.'
)
_ALL_PAIRS_HELP = "Also compare the configurations with each other."
_CONFIDENCE_HELP = "Confidence level of intervals; this and the next two options default to the run's values."
_BASELINE_RUN_ID_HELP = (
    "Id of the baseline's run, in DIR2 or else in DIR; by default the experiment's latest other run."
)
_OTHER_DATASET_HELP = "Compare the queries that both runs have, even if the datasets differ."
_SHARE = FloatRange(0, 1, min_open=True, max_open=True)
_P_HELP = "Weight of the next rank: with 0.9, the first ten ranks have 86% of the weight."


@main.command()
@click.argument("folder", metavar="DIR")
@click.argument("other_folder", metavar="[DIR2]", required=False)
@click.option("--baseline", metavar="NAME", help=_BASELINE_HELP)
@click.option("-m", "--metric", "metrics", multiple=True, metavar="METRIC", help=_METRIC_HELP)
@click.option("--slice", "slices", multiple=True, metavar="NAME", default=["all"], help=_SLICE_HELP)
@click.option("--all-pairs", is_flag=True, help=_ALL_PAIRS_HELP)
@click.option("--confidence", type=FloatRange(0.5, 1.0, max_open=True), metavar="SHARE", help=_CONFIDENCE_HELP)
@click.option("--replicates", type=click.IntRange(0, 100_000), metavar="N", help="Bootstrap replicates; 0 for none.")
@click.option("--seed", type=click.IntRange(0, (1 << 32) - 1), metavar="N", help="Random seed of bootstrap and tests.")
@click.option("--baseline-run-id", metavar="ID", help=_BASELINE_RUN_ID_HELP)
@of_run
@click.option("--other-dataset", is_flag=True, help=_OTHER_DATASET_HELP)
@shown_as(_FORMATS)
@wide
def compare(
    named: NamedRun, other_folder: str | None, baseline_run_id: str | None, form: str, wide: bool, **options: Any
) -> None:
    """Compare the configurations of the run in DIR with a baseline, query by query.

    The baseline is a configuration of the same run, or of the run in DIR2. Without --baseline, each configuration is
    compared with the configuration of the same name in DIR2. Intervals and tests are computed as in the experiment. DIR
    and DIR2 may be bigquery://project.dataset, for runs in BigQuery.

    \b
    Examples:
      rankbeam compare out/helpdesk --baseline bm25
      rankbeam compare out/today out/yesterday --slice intent
      rankbeam compare out/today bigquery://my-project.search \\
        --baseline-run-id yesterday
    """
    from rankbeam.pipelines.compare import compare as comparison
    from rankbeam.pipelines.compare import show as compare_show
    from rankbeam.pipelines.show.tabular import Screen

    runs = named.with_other(other_folder, baseline_run_id)
    compared = comparison.compare(*runs, comparison.ComparisonQuestion(**options))
    warn(*compared.warnings())
    if form == "table":
        click.echo(compare_show.as_text(compared, Screen.of(wide=wide)))
    else:
        click.echo(compare_show.SHOWN[form](compared), nl=form not in ("csv", "latex"))


@main.command()
@click.argument("baseline", metavar="RUN")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("-p", "weight", type=_SHARE, metavar="P", default=0.9, show_default=True, help=_P_HELP)
@click.option("--depth", type=click.IntRange(1), metavar="K", help="Only the first K documents of each query.")
@shown_as()
@wide
def rbo(baseline: str, runs: tuple[str, ...], weight: float, depth: int | None, form: str, wide: bool) -> None:
    """Show how similar the rankings of runs are to those of the first one, without judgements.

    Rank-biased overlap is 1 for equal rankings and 0 for rankings that share no document; the first ranks count most.
    Runs are files in any format that `rankbeam score` reads; one may be -, standard input.

    \b
    Example:
      rankbeam rbo bm25.run dense.run hybrid.run --depth 100
    """
    with with_standard_input((baseline, *runs)) as paths:
        from rankbeam.pipelines.compare.rbo import overlaps_of
        from rankbeam.pipelines.show.tabular import Screen

        overlaps = overlaps_of([*paths], weight, depth)
        warn(*overlaps.warnings)
        click.echo(overlaps.as_json() if form == "json" else overlaps.as_text(Screen.of(wide=wide)))
