"""The command that fills holes in the judgements with a judge's grades."""

import click

from rankbeam.pipelines.cli.group import EXPERIMENT_NAME_HELP, main, wide
from rankbeam.pipelines.local.messages import messages, warn

_GRADES_HELP = (
    "Human grades that correspond to the judge's grades 0 to 3, such as 0,0,1,2; by default derived from the highest "
    "human grade."
)

_AUDIT_HELP = (
    "Maximum number of documents that audit the judge, of those that people and judge graded; drawn by the judge's "
    "grade."
)


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--grades", metavar="A,B,C,D", help=_GRADES_HELP)
@click.option("--audit", type=click.IntRange(min=50), metavar="N", default=200, show_default=True, help=_AUDIT_HELP)
@click.option("--run-id", metavar="ID", help="Id of the run; by default the run that started last.")
@click.option("--experiment-name", metavar="NAME", help=EXPERIMENT_NAME_HELP)
@wide
def holes(
    folder: str, grades: str | None, audit: int, run_id: str | None, experiment_name: str | None, wide: bool
) -> None:
    """Fill holes in the judgements of the run in DIR with the grades of its judge, and audit the judge.

    The run needs the metric ContextRelevance@k, for which the judge grades the first k documents of each configuration.
    Documents that people judged keep their grades and audit the judge. The command writes a new file of judgements into
    DIR/holes, with `human` or `llm` in its last column. It makes no call and never changes the dataset's own file.

    \b
    Example:
      rankbeam holes out/helpdesk
    """
    with messages():
        from rankbeam.pipelines.holes.fill import fill
        from rankbeam.pipelines.results.find import find_run
        from rankbeam.pipelines.show.screen import Screen

        filling = fill(find_run(folder, run_id, experiment_name), grades, audit)
        for warning in filling.warnings:
            warn(warning)
        click.echo(filling.as_text(Screen.of(wide=wide)))
