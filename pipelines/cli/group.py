"""The command line's frame: the group of commands, and options that several of them have."""

import click

TABLE_OR_JSON = click.Choice(["table", "json"])
EXPERIMENT_NAME_HELP = "The latest run of this experiment, where DIR holds runs of several."

allow_disjoint = click.option(
    "--allow-disjoint", is_flag=True, help="Continue where runs or the corpus share no id with the judgements."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rankbeam", message="rankbeam %(version)s")
def main() -> None:
    """Evaluate retrieval and RAG systems in batch, on Apache Beam.

    \b
    Exit status: 0 done, 1 the run failed, 2 the input was refused, 3 done but a limit was missed (too many failed
    calls, a gate, no judged document in what was paid for), 130 interrupted.
    Results go to stdout, progress and messages to stderr.
    """
