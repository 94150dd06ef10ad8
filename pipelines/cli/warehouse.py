"""The commands that keep results in BigQuery."""

import click

from rankbeam.pipelines.cli.group import NamedRun, confirm_deletion, main, of_run

_DAYS_HELP = "Let BigQuery delete runs once they are this many days old; 0: never."


@main.group()
def warehouse() -> None:
    """Store the results of runs in BigQuery, and create views that query them."""


@warehouse.command()
@click.argument("folder", metavar="DIR")
@click.option("--dataset", "name", required=True, metavar="PROJECT.DATASET", help="Dataset to load the run into.")
@of_run
def load(named: NamedRun, name: str) -> None:
    """Load a finished run in DIR, the output folder of `rankbeam evaluate`, into BigQuery.

    Missing tables are created. Rows of the same run that are already there are replaced, in all tables at once.

    \b
    Example:
      rankbeam warehouse load out/helpdesk --dataset my-project.search
    """
    from rankbeam.pipelines.run.build import table_folders
    from rankbeam.transforms.clients.bigquery import publish, tables
    from rankbeam.transforms.clients.bigquery.names import is_table
    from rankbeam.transforms.records.errors import InputError

    if is_table(named.folder):
        raise InputError(f"{named.folder} is already in BigQuery; name the output folder of the run")
    run = named.find()
    dataset = tables.destination(name)
    loaded = publish.load_run(dataset, run.run_id, table_folders(named.folder, run.run_id))
    click.echo(f"run {loaded.run_id} is in {dataset}")


@warehouse.command()
@click.option("--dataset", "name", required=True, metavar="PROJECT.DATASET", help="The dataset with the tables.")
@click.option("--dry-run", is_flag=True, help="Print the statements instead of running them.")
@click.option("--partition-days", type=click.IntRange(min=0), metavar="DAYS", help=_DAYS_HELP)
@click.option("--yes", is_flag=True, help="With --partition-days: do not ask for confirmation.")
def apply(name: str, dry_run: bool, partition_days: int | None, yes: bool) -> None:
    """Create the views over the tables in a BigQuery dataset, or replace them with this version's views.

    Missing tables are created, so that the views can exist before the first run.

    With --partition-days, BigQuery deletes the rows of runs that began more than this many days ago from all tables,
    now and in future; the command asks for confirmation first. Without it, the dataset's setting stays. A baseline that
    runs are compared with expires, too.

    \b
    Examples:
      rankbeam warehouse apply --dataset my-project.search
      rankbeam warehouse apply --dataset my-project.search --dry-run \\
        | bq query --use_legacy_sql=false
      rankbeam warehouse apply --dataset my-project.search --partition-days 400
    """
    if partition_days is None and yes:
        raise click.UsageError("--yes is for --partition-days")
    if partition_days is not None and dry_run:
        raise click.UsageError("--partition-days is a setting of tables, and --dry-run prints statements of views")
    from rankbeam.transforms.clients.bigquery import tables
    from rankbeam.transforms.clients.bigquery.names import DatasetName
    from rankbeam.transforms.clients.warehouse import views

    if dry_run:
        for _, statement in views.for_bigquery(DatasetName.parse(name)):
            click.echo(f"{statement};")
        return
    dataset = tables.destination(name)
    expired = f"rows of {name} of runs that began over {partition_days} days ago, now and from now on"
    if partition_days and not confirm_deletion(f"Delete all {expired}?", yes=yes):
        return
    if partition_days is not None:
        tables.expire(dataset, partition_days)
    for view in views.apply(dataset):
        click.echo(view)
