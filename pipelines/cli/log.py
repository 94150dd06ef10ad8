"""The command that copies a finished run to an experiment tracker."""

import click

from rankbeam.pipelines.cli.group import EXPERIMENT_NAME_HELP, main
from rankbeam.pipelines.local.messages import messages

_MLFLOW_HELP = "MLflow's tracking store: a folder, sqlite:///mlflow.db, or http://HOST:PORT."
_VERTEX_HELP = "Vertex AI Experiments of a project and region: projects/P/locations/L."


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--mlflow", metavar="URI", help=_MLFLOW_HELP)
@click.option("--vertex", metavar="LOCATION", help=_VERTEX_HELP)
@click.option(
    "--name",
    metavar="NAME",
    help="Name of the experiment in the tracker; by default the run's experiment, in lower case.",
)
@click.option("--run-id", metavar="ID", help="Id of the run in DIR; by default the latest.")
@click.option("--experiment-name", metavar="NAME", help=EXPERIMENT_NAME_HELP)
@click.option("--api-endpoint", metavar="ADDRESS", help="Address of Vertex AI, instead of the public one.")
def log(
    folder: str,
    mlflow: str | None,
    vertex: str | None,
    name: str | None,
    run_id: str | None,
    experiment_name: str | None,
    api_endpoint: str | None,
) -> None:
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
    with messages():
        from rankbeam.pipelines.results.find import find_run
        from rankbeam.pipelines.show.trials import trials_of
        from rankbeam.transforms.clients.tracking import log_to_mlflow, log_to_vertex

        run = find_run(folder, run_id, experiment_name)
        experiment, trials = name or run.experiment.lower(), trials_of(run)
        if mlflow is not None:
            count = log_to_mlflow(mlflow, experiment, trials)
        else:
            count = log_to_vertex(str(vertex), experiment, trials, api_endpoint)
        click.echo(f"{run.named}: {count} of {len(trials)} configurations written to the experiment {experiment!r}")
