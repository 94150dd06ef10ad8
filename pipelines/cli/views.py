"""The command that creates rankbeam's views in BigQuery."""

import click

from rankbeam.pipelines.cli.warehouse import warehouse
from rankbeam.pipelines.local.messages import messages


@warehouse.command()
@click.option("--dataset", "name", required=True, metavar="PROJECT.DATASET", help="The dataset that holds the tables.")
@click.option("--dry-run", is_flag=True, help="Print the statements instead of running them.")
def apply(name: str, dry_run: bool) -> None:
    """Create the views over the tables in a dataset of BigQuery, or replace them by those of this version.

    Missing tables are created, so that the views can exist before the first run.

    \b
    Examples:
      rankbeam warehouse apply --dataset my-project.search
      rankbeam warehouse apply --dataset my-project.search --dry-run \\
        | bq query --use_legacy_sql=false
    """
    with messages():
        from rankbeam.transforms.clients.bigquery import tables
        from rankbeam.transforms.clients.bigquery.names import DatasetName
        from rankbeam.transforms.clients.warehouse import views

        if dry_run:
            for _, statement in views.for_bigquery(DatasetName.parse(name)):
                click.echo(f"{statement};")
        else:
            for view in views.apply(tables.destination(name)):
                click.echo(view)
