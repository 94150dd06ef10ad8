"""The command line's frame: the group of commands, and options that several of them have."""

from typing import Any

import click

from rankbeam.pipelines.run import command_line

TABLE_OR_JSON = click.Choice(["table", "json"])
EXPERIMENT_NAME_HELP = "The latest run of this experiment, where DIR holds runs of several."
_LONGEST_SENTENCE = 1_000

allow_disjoint = click.option(
    "--allow-disjoint", is_flag=True, help="Continue where runs or the corpus share no id with the judgements."
)


wide = click.option("--wide", is_flag=True, help="Show all columns of tables, however narrow the terminal is.")


class Command(click.Command):
    """A command that lists of commands describe with its whole first sentence, instead of cutting it short."""

    def get_short_help_str(self, limit: int = 0) -> str:  # noqa: ARG002  click's limit is what cuts it short
        """The first sentence of the help."""
        return super().get_short_help_str(_LONGEST_SENTENCE)


class Group(Command, click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Keep the words of the command line, which a run records."""
        words = list(args)
        context = super().make_context(info_name, args, parent, **extra)
        if parent is None:
            command_line.remember(words)
        return context


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rankbeam", message="rankbeam %(version)s")
def main() -> None:
    """Evaluate retrieval and RAG systems in batch, on Apache Beam.

    Exit status: 0 done, 1 the run failed, 2 the input was refused, 3 done but a limit was missed (too many failed
    calls, a gate, no judged document in what was paid for), 130 interrupted.

    Results go to stdout, progress and messages to stderr.
    """
