"""The command that lists the finished runs of an output folder, and deletes old ones."""

import click

from rankbeam.pipelines.cli.group import FloatRange, confirm_deletion, main, shown_as, wide
from rankbeam.pipelines.local.interrupt import defer_interrupt

_DELETING = "stopping once all rows of these runs are deleted; press Ctrl-C again to stop at once"


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--prune", is_flag=True, help="Delete all but the latest run of each experiment, with all their rows.")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --prune: number of latest runs of each experiment to keep; by default 1.",
)
@click.option("--older-than", type=FloatRange(min=0, max=36_500), metavar="DAYS", help="With --prune: only older runs.")
@click.option(
    "--indexes",
    is_flag=True,
    help="With --prune: delete indexes unused for --older-than days (default 30), instead of runs.",
)
@click.option("--dry-run", is_flag=True, help="With --prune: only list what would be deleted.")
@click.option("--yes", is_flag=True, help="With --prune: do not ask for confirmation.")
@shown_as()
@wide
def runs(
    folder: str,
    prune: bool,
    keep: int | None,
    older_than: float | None,
    indexes: bool,
    dry_run: bool,
    yes: bool,
    form: str,
    wide: bool,
) -> None:
    """List the finished runs in DIR, the output folder of `rankbeam evaluate`, the latest last.

    The best configuration is the best by each run's first metric. The state is `done`, or `missed` if a gate was
    missed, too many calls failed or `max_cost` was reached. DIR may be bigquery://project.dataset.

    With --prune, old runs are deleted, after asking for confirmation. Paid answers stay: they are in the ledger.
    Leftovers of killed races are deleted, too. In BigQuery, each run is deleted from all tables at once, and only its
    day's partitions are read.

    With --prune --indexes, runs are kept, and indexes that no run has used for some days are deleted; a run that needs
    such an index builds it again.

    \b
    Examples:
      rankbeam runs out/helpdesk
      rankbeam runs out/helpdesk --prune --keep 10 --older-than 30
      rankbeam runs gs://my-bucket/out --prune --indexes --dry-run
      rankbeam runs bigquery://my-project.search --prune --older-than 365
    """
    if not prune and (keep is not None or older_than is not None or indexes or dry_run or yes):
        raise click.UsageError("--keep, --older-than, --indexes, --dry-run and --yes are for --prune")
    if indexes and keep is not None:
        raise click.UsageError("--keep counts runs; with --indexes, use --older-than")
    if indexes:
        _prune_indexes(folder, older_than, form, wide=wide, dry_run=dry_run, yes=yes)
        return
    from rankbeam.pipelines.manage import prune as pruning
    from rankbeam.pipelines.results.find import finished_runs
    from rankbeam.pipelines.run import folders
    from rankbeam.pipelines.show import runs as listing
    from rankbeam.pipelines.show.tabular import Screen
    from rankbeam.transforms.clients.bigquery.names import is_table
    from rankbeam.transforms.records.errors import pluralize

    if prune:
        for leftover in folders.delete_abandoned(folder, folders.RACE, dry_run=dry_run):
            click.echo(f"{'would delete' if dry_run else 'deleted'} {leftover}, which a killed race left", err=True)
        if rest := pruning.half_deleted(folder):
            if not dry_run:
                pruning.delete(folder, ())
            verb = "would delete" if dry_run else "deleted"
            click.echo(f"{verb} the rows of {', '.join(rest)} that a killed deletion left", err=True)
    finished = finished_runs(folder)
    if prune:
        finished = pruning.needless(finished, keep or 1, older_than)
    click.echo(listing.as_json(finished) if form == "json" else listing.as_text(finished, Screen.of(wide=wide)))
    number = pluralize(len(finished), "run")
    question, confirmed = f"Delete {number} with all rows?", confirm_deletion if is_table(folder) else _confirm
    if prune and finished and not dry_run and confirmed(question, yes=yes):
        with defer_interrupt(_DELETING) as raise_held:  # a later command would not see the rows that were left
            pruning.delete(folder, finished)
        click.echo(f"deleted {number}", err=True)
        raise_held()


def _prune_indexes(folder: str, older_than: float | None, form: str, *, wide: bool, dry_run: bool, yes: bool) -> None:
    from rankbeam.pipelines.manage import prune
    from rankbeam.pipelines.show.tabular import Screen
    from rankbeam.transforms.records.errors import pluralize

    indexes = prune.unused_indexes(folder, prune.DAYS if older_than is None else older_than)
    click.echo(prune.as_json(indexes) if form == "json" else prune.as_text(indexes, Screen.of(wide=wide)))
    number = pluralize(len(indexes), "index", "indexes")
    if indexes and not dry_run and _confirm(f"Delete {number}?", yes=yes):
        prune.delete_indexes(indexes)
        click.echo(f"deleted {number}", err=True)


def _confirm(question: str, *, yes: bool) -> bool:
    return yes or click.confirm(question, default=False, err=True)
