"""The command that compares rankings without judgements."""

import click

from rankbeam.pipelines.cli import standard_input
from rankbeam.pipelines.cli.group import main, shown_as, wide
from rankbeam.pipelines.local.messages import messages, warn

_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
_P_HELP = "Weight of the next rank: with 0.9, the first ten ranks have 86% of the weight."


@main.command()
@click.argument("baseline", metavar="RUN")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "-p",
    "weight",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help=_P_HELP,
)
@click.option("--depth", type=click.IntRange(1), metavar="K", help="Only the first K documents of each query.")
@shown_as()
@wide
def rbo(baseline: str, runs: tuple[str, ...], weight: float, depth: int | None, form: str, wide: bool) -> None:
    """Show how much the rankings of runs resemble those of the first one, without judgements.

    Rank-biased overlap is 1 for equal rankings and 0 for rankings that share no document; the first ranks count most.
    Runs are files in any format that `rankbeam score` reads; one may be -, standard input.

    \b
    Example:
      rankbeam rbo bm25.run dense.run hybrid.run --depth 100
    """
    with messages(), standard_input.read((baseline, *runs)) as paths:
        from rankbeam.pipelines.compare.rbo import overlaps_of
        from rankbeam.pipelines.show.screen import Screen

        overlaps = overlaps_of([*paths], weight, depth)
        for warning in overlaps.warnings:
            warn(warning)
        click.echo(overlaps.as_json() if form == "json" else overlaps.as_text(Screen.of(wide=wide)))
