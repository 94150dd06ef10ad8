"""The command that collects nuggets for a collection that has none."""

from typing import TYPE_CHECKING

import click

from rankbeam.pipelines.cli.group import main
from rankbeam.pipelines.local.interrupt import Interrupted, finish_calls, in_background
from rankbeam.pipelines.local.messages import MISSED, leave, warn
from rankbeam.transforms.records.errors import pluralize

if TYPE_CHECKING:
    from rankbeam.pipelines.nuggets.make import CollectedNuggets, PooledCollection

_MOST_NAMED = 3


@main.command()
@click.argument("experiment")
@click.option("--output", metavar="DIR", help="Folder with the run, instead of the experiment's output.path.")
@click.option("--depth", type=click.IntRange(min=1), metavar="N", default=10, show_default=True,
              help="Number of first documents of each ranking whose human judgements count.")  # fmt: skip
@click.option("--plan", "only_plan", is_flag=True, help="Show calls, tokens and cost, and make no call.")
@click.option(
    "--review", "table", metavar="FILE", help="Write the nuggets as a table (CSV) for editing; FILE must not exist."
)
@click.option("--apply", "reviewed", metavar="FILE", help="Read the edited table, and change the nuggets.")
@click.option("--run-id", metavar="ID", help="Id of the run; by default the run that started last.")
def nuggets(
    experiment: str,
    output: str | None,
    depth: int,
    only_plan: bool,
    table: str | None,
    reviewed: str | None,
    run_id: str | None,
) -> None:
    """Collect nuggets, facts that good answers need, from the contexts that a finished run of EXPERIMENT retrieved.

    The contexts of all configurations are pooled; a context counts if people judged it relevant, or if the judge graded
    it 2 or 3 (metric ContextRelevance@k). The judge collects the nuggets and decides which are vital.
    DIR/nuggets/answers.jsonl is for people to review; `dataset: {answers: {path: …}}` reads it. A second run keeps rows
    that have nuggets, edited or not, and adds the missing ones. In the table, people edit the columns nugget and vital,
    write drop in the column decision, or add rows without an id.

    \b
    Examples:
      rankbeam nuggets experiment.yaml --plan
      rankbeam nuggets experiment.yaml
      rankbeam nuggets experiment.yaml --review nuggets.csv
      rankbeam nuggets experiment.yaml --apply nuggets.csv
    """
    if sum([only_plan, table is not None, reviewed is not None]) > 1:
        raise click.UsageError("say one of --plan, --review and --apply")
    from rankbeam.pipelines.experiment.load import load_experiment
    from rankbeam.pipelines.nuggets.make import collection_of, forecast, forecast_text, refuse_above_budget
    from rankbeam.pipelines.run.folders import prepared_folders

    loaded = load_experiment(experiment, output)
    if table is not None or reviewed is not None:
        click.echo(_run_review(loaded.output, table, reviewed))
        return
    with prepared_folders(loaded):
        collection = collection_of(loaded, run_id, depth)
        if only_plan:
            click.echo(forecast_text(collection, forecast(collection)))
            return
        if loaded.calls.max_cost is not None:
            refuse_above_budget(loaded, forecast(collection), experiment)
        collected = _collect_nuggets(collection)
    warn(*collected.warnings)
    click.echo(collected.as_text())
    if collected.failures:
        named = [f"{query_id} ({problem})" for query_id, problem in list(collected.failures.items())[:_MOST_NAMED]]
        queries = pluralize(len(collected.failures), "query", "queries")
        problem = f"{queries} without nuggets because a call failed: {', '.join(named)}"
        leave(f"{problem}; the same command tries again", MISSED)


def _run_review(folder: str, table: str | None, reviewed: str | None) -> str:
    """Write a table of the nuggets, or read one; return a message about what was done."""
    from rankbeam.pipelines.nuggets.make import FILE, FOLDER
    from rankbeam.pipelines.nuggets.review import apply_review, reviewable
    from rankbeam.transforms.clients.storage import files

    path = files.join(folder, FOLDER, FILE)
    if reviewed is not None:
        return apply_review(path, reviewed)
    content, target = reviewable(path), table or ""
    files.refuse_existing(target)
    files.write(target, content.encode("utf-8-sig", "replace"))
    return f"{target}: edit it, then rankbeam nuggets EXPERIMENT.yaml --apply {target}"


def _collect_nuggets(collection: "PooledCollection") -> "CollectedNuggets":
    from rankbeam.pipelines.local.progress import CallsOfPools, show_progress
    from rankbeam.pipelines.nuggets.make import collect
    from rankbeam.pipelines.run.options import pipeline_options

    try:
        with show_progress(CallsOfPools(0, 0, collection.experiment.calls.pools, doing="collecting nuggets")):
            return in_background(lambda: collect(collection, pipeline_options((), ())))
    except KeyboardInterrupt:
        raise Interrupted([], finish_calls(collection.experiment.ledger)) from None
