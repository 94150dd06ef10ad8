"""The command line's frame: the group of commands, and options that several commands share."""

import functools
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from rankbeam.pipelines.local.messages import REFUSED, leave, messages
from rankbeam.pipelines.run import provenance

if TYPE_CHECKING:
    from rankbeam.pipelines.results.run import Results

DOCUMENTATION = "https://github.com/rankbeam/rankbeam/blob/main/docs"

GUIDES: Mapping[str, str] = {
    "batch": "services",
    "cancel": "cloud",
    "clicks": "formats",
    "compare": "statistics",
    "corpora": "corpora",
    "evalset": "applications",
    "evaluate": "start",
    "gate": "gates",
    "export": "other-tools",
    "goldens": "goldens",
    "holes": "trust",
    "nuggets": "judging",
    "init": "start",
    "judge": "other-tools",
    "label": "trust",
    "ledger": "services",
    "log": "gates",
    "monitor": "trust",
    "plan": "services",
    "rbo": "statistics",
    "report": "report",
    "runs": "tables",
    "schema": "experiment",
    "score": "from-trec_eval",
    "status": "cloud",
    "traces": "traces",
    "trend": "report",
    "validate": "experiment",
    "warehouse": "cloud",
    "worst": "report",
}
"""The page of every command and its subcommands."""
TABLE_OR_JSON = click.Choice(["table", "json"])
EXPERIMENT_NAME_HELP = "Use the latest run of this experiment, if DIR contains runs of several."
_STDIN = "-"
_LONGEST_SENTENCE = 1_000
_PLACES = ("FILE", "DIR", "DIR2", "EXPERIMENT")
_FILE_ENDINGS = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".html", ".md", ".tex", ".parquet", ".duckdb")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class FloatRange(click.FloatRange):
    """A range of numbers without NaN. Click's own range accepts NaN, since every comparison with it is false."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


def guide(command: str | None) -> str:
    """The address of a command's page; of the index for the program itself and for commands without a page.

    >>> guide("gate").rpartition("/")[2]
    'gates.md'
    """
    return f"{DOCUMENTATION}/{GUIDES.get(command or '', 'index')}.md"


def shown_as(forms: click.Choice[str] = TABLE_OR_JSON) -> Callable[[_Function], _Function]:
    help_text = "Format of the output."
    return click.option("--format", "form", type=forms, default="table", show_default=True, help=help_text)


@dataclass(frozen=True)
class OutputFormat:
    """Output format of a result."""

    form: str
    wide: bool
    per_query: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)
    temporary: bool = False
    sampled: bool = False


allow_disjoint = click.option(
    "--allow-disjoint", is_flag=True, help="Continue even if runs or the corpus share no id with the judgements."
)


wide = click.option("--wide", is_flag=True, help="Show all columns of tables, even in a narrow terminal.")


@dataclass(frozen=True)
class NamedRun:
    """The finished run that a command is about."""

    folder: str
    run_id: str | None
    experiment_name: str | None

    def find(self) -> "Results":
        from rankbeam.pipelines.results.find import find_run

        return find_run(self.folder, self.run_id, self.experiment_name)

    def with_other(self, folder: str | None, run_id: str | None) -> "tuple[Results, Results | None]":
        """The run, and the run that it is compared with, if there is one."""
        from rankbeam.pipelines.results.find import find_baseline

        run = self.find()
        return run, None if folder is None and run_id is None else find_baseline(run, folder or self.folder, run_id)


def of_run(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose a run in a folder; the command gets them and the folder as one object."""

    @click.option("--run-id", metavar="ID", help="Id of the run; by default the run that started last.")
    @click.option("--experiment-name", metavar="NAME", help=EXPERIMENT_NAME_HELP)
    @functools.wraps(command)
    def named(folder: str, run_id: str | None, experiment_name: str | None, **options: Any) -> None:
        command(NamedRun(folder, run_id, experiment_name), **options)

    return named


def confirm_deletion(question: str, *, yes: bool) -> bool:
    """Ask before deleting what cannot be restored; a pipe never answers by accident."""
    if not yes and not sys.stdin.isatty():
        raise click.UsageError(f"{question} There is no terminal to confirm this; add --yes")
    return yes or click.confirm(question, default=False, err=True)


def own_options() -> list[str]:
    return [name for parameter in click.get_current_context().command.params for name in parameter.opts]


@contextmanager
def with_standard_input(paths: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths, with a temporary copy of standard input instead of `-`, because files are read more than once."""
    if _STDIN not in paths:
        yield paths
        return
    if paths.count(_STDIN) > 1:
        raise click.UsageError("standard input (-) can replace only one file")
    import shutil
    from tempfile import TemporaryDirectory

    from rankbeam.transforms.records.errors import InputError

    with TemporaryDirectory(prefix="rankbeam-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "stdin"
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield tuple(str(copy) if path == _STDIN else path for path in paths)
        except InputError as error:
            raise InputError(str(error).replace(str(copy), "standard input")) from error


class _Place(click.types.StringParamType):
    """A path or an address: shells complete files, and only the command itself looks for them."""

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        param: click.Parameter,  # noqa: ARG002  click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


class _Folder(_Place):
    """A folder for results; a file's name is refused, since it would create a folder of that name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if not path.strip():
            leave("--output is empty; name a folder for the results", REFUSED)
        is_file = "://" not in path and Path(path).is_file()
        if is_file or path == "-" or path.lower().endswith(_FILE_ENDINGS):
            what = "standard output" if path == "-" else f"{'' if is_file else 'the name of '}a file"
            problem = f"{path}: is {what}, and --output names a folder"
            leave(f"{problem}; to keep what is printed, redirect it: --format json > FILE", REFUSED)
        return path


class _File(_Place):
    """A file to write; "-" is refused, since it would create a file of that name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if param is not None and path.strip() in ("", "-"):
            leave(f"{param.opts[0]} names a file, found {path!r}; give the path of a file to write", REFUSED)
        return path


_WRITTEN = ["--output"], ["--junit"]


class Command(click.Command):
    """A command whose help links to its page, whose paths shells complete, and which ends with one message.

    Lists of commands show its whole first sentence instead of cutting it short.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for param in self.params:
            is_text = isinstance(param.type, click.types.StringParamType | click.types.UnprocessedParamType)
            if is_text and param.opts in _WRITTEN:
                param.type = _Folder() if param.metavar == "DIR" else _File()
            elif is_text and (isinstance(param, click.Argument) or param.metavar in _PLACES):
                param.type = _Place()

    def invoke(self, ctx: click.Context) -> Any:
        with messages():
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names: list[str | None] = []
        while ctx.parent is not None:
            names.append(ctx.info_name)
            ctx = ctx.parent
        formatter.write_paragraph()
        formatter.write(f"Guide: {guide(names[-1] if names else None)}\n")

    def get_short_help_str(self, limit: int = 0) -> str:  # noqa: ARG002  click's limit is what cuts it short
        return super().get_short_help_str(_LONGEST_SENTENCE)


class Group(Command, click.Group):
    """A group of such commands."""

    command_class = Command
    group_class = type

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Remember the words of the command line, which a run records."""
        words = list(args)
        with messages():  # of --help and --version, which print while they are parsed
            context = super().make_context(info_name, args, parent, **extra)
        if parent is None:
            provenance.remember(words)
        return context


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rankbeam", message="rankbeam %(version)s")
def main() -> None:
    """Evaluate retrieval and RAG systems in batch, on Apache Beam.

    Exit status: 0 done, 1 the run failed, 2 the input was refused, 3 done but a limit was missed (too many failed
    calls, a gate, no judged document in the paid results), 4 the job still runs (status, report), 130 interrupted.

    Results go to stdout, progress and messages to stderr.
    """
