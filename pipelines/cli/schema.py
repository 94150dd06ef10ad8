"""The command that prints the JSON Schema of the experiment file."""

import click

from rankbeam.pipelines.cli.group import main
from rankbeam.pipelines.local.messages import messages


@main.command()
def schema() -> None:
    """Print the JSON Schema of the experiment file, with the parameters of every type that is installed.

    Editors complete and check an experiment that names the schema in a comment, as `rankbeam init` writes it:
    # yaml-language-server: $schema=rankbeam.schema.json

    \b
    Example:
      rankbeam schema > rankbeam.schema.json
    """
    with messages():
        from rankbeam.pipelines.experiment.file.schema import as_json

        click.echo(as_json(), nl=False)
