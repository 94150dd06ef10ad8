"""The commands that keep results in BigQuery."""

import click

from rankbeam.pipelines.cli.group import EXPERIMENT_NAME_HELP, main
from rankbeam.pipelines.local.messages import messages


@main.group()
def warehouse() -> None:
    """Store the results of runs in BigQuery, and create views that query them."""


@warehouse.command()
@click.argument("folder", metavar="DIR")
@click.option("--dataset", "name", required=True, metavar="PROJECT.DATASET", help="Dataset to load the run into.")
@click.option("--run-id", metavar="ID", help="Id of the run; by default the run that started last.")
@click.option("--experiment-name", metavar="NAME", help=EXPERIMENT_NAME_HELP)
def load(folder: str, name: str, run_id: str | None, experiment_name: str | None) -> None:
    """Load a finished run in DIR, the output folder of `rankbeam evaluate`, into BigQuery.

    Missing tables are created. Rows of the same run that are already there are replaced, in all tables at once.

    \b
    Example:
      rankbeam warehouse load out/helpdesk --dataset my-project.search
    """
    with messages():
        from rankbeam.pipelines.results.find import find_run
        from rankbeam.pipelines.run.build import table_folders
        from rankbeam.transforms.clients.bigquery import publish, tables
        from rankbeam.transforms.clients.bigquery.read_source import is_table
        from rankbeam.transforms.records.errors import InputError

        if is_table(folder):
            raise InputError(f"{folder} is already in BigQuery; name the output folder of the run")
        run = find_run(folder, run_id, experiment_name)
        dataset = tables.destination(name)
        loaded = publish.load_run(dataset, run.run_id, table_folders(folder, run.run_id))
        click.echo(f"run {loaded.run_id} is in {dataset}")
