"""The command that writes a first experiment, or the example."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import click

from rankbeam.pipelines.cli.group import EXPERIMENT_NAME_HELP, Command, main

_FROM = "--from"
_ANSWERING = ("application", "judge", "gemini", "openai")
_TEMPLATES = click.Choice(["bm25", "rag_engine", "http", *_ANSWERING])
_FROM_HELP = "Compare these runs, using these judgements, or judge the answers in FILE."
_EXPERIMENT, _HELPDESK = "experiment.yaml", "helpdesk"
_PREPARATIONS = {
    "http": "put your service into {}, then ",
    "application": "put your application into {}, then ",
    "rag_engine": "put your service into {}, then ",
    "gemini": "export GEMINI_API_KEY=…, then ",
    "openai": "export OPENAI_API_KEY=…, then ",
}
_EXAMPLES = click.Choice([_HELPDESK, "chunking", "answers", "runs", "goldens", "notebook", "app"])
_EXAMPLE = "--example"
_SAME_NAME = 0.85  # similarity of a misspelt name
_EXAMPLE_HELP = "Write an example with its collection into the folder PATH; without a name, helpdesk."


class _InitCommand(Command):
    """A command whose `--from` takes all words up to the next option, and whose `--example` needs no name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat `--from` before each of its words, as click expects, and name the example."""
        return super().parse_args(ctx, list(_with_name(list(_repeat_option(args)))))


@main.command(cls=_InitCommand)
@click.argument("path", required=False)
@click.option(_FROM, "arguments", multiple=True, metavar="QRELS RUN…|FILE", help=_FROM_HELP)
@click.option("--template", type=_TEMPLATES, help="Kind of experiment; by default bm25.")
@click.option("--queries", metavar="FILE", help="The queries; by default queries.jsonl beside PATH.")
@click.option("--qrels", metavar="FILE", help="The judgements; by default qrels/test.tsv beside PATH.")
@click.option("--corpus", metavar="FILE", help="The documents; by default corpus.jsonl beside PATH.")
@click.option("--answers", metavar="NAME", help="Query attribute with the reference answers; by default answer.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=KEY",
    help="With --from FILE: key of a row's question, answer, contexts …",
)
@click.option(
    "--winner", metavar="DIR", help="Write the experiment of the run in DIR with its best configuration alone."
)
@click.option("--configuration", metavar="NAME", help="With --winner: this configuration instead of the best one.")
@click.option("--experiment-name", metavar="NAME", help=EXPERIMENT_NAME_HELP)
@click.option(_EXAMPLE, type=_EXAMPLES, metavar="[NAME]", help=_EXAMPLE_HELP)
def init(
    path: str | None,
    arguments: tuple[str, ...],
    template: str | None,
    columns: tuple[str, ...],
    winner: str | None,
    configuration: str | None,
    experiment_name: str | None,
    example: str | None,
    **dataset: str | None,
) -> None:
    """Write a first experiment to PATH, by default experiment.yaml, and check it as `validate` does.

    The command asks no questions and overwrites no file. If a template needs files that you do not name and that do not
    exist, the files of the helpdesk example are written beside it; replace them with your own.

    \b
    Examples:
      rankbeam init --from qrels.txt bm25.run dense.run
      rankbeam init --from ragas.jsonl
      rankbeam init --template judge --queries questions.jsonl \\
        --corpus documents.jsonl
      rankbeam init --example helpdesk && rankbeam evaluate helpdesk/answers.yaml
      rankbeam init --example app
      rankbeam init best.yaml --winner out/sweep
    """
    files = {role: file for role, file in dataset.items() if file is not None}
    _refuse_mixed(arguments, template, files, columns, example=example is not None)
    _refuse_elsewhere(path)
    if winner is not None:
        if arguments or template or files or example:
            raise click.UsageError("--winner copies the run's experiment; leave out the other options")
        _write_winner(Path(path or _EXPERIMENT), winner, configuration, experiment_name)
        return
    if configuration is not None or experiment_name is not None:
        raise click.UsageError("--configuration and --experiment-name need --winner DIR, the folder of a run")
    lines = (
        _write_experiment(path or _EXPERIMENT, arguments, template, files, columns)
        if example is None
        else _write_example(path or (_HELPDESK if example == _HELPDESK else "examples"), example)
    )
    for line in lines:
        click.echo(line)


def _write_winner(path: Path, folder: str, name: str | None, experiment: str | None) -> None:
    from rankbeam.pipelines.results.find import find_run
    from rankbeam.pipelines.results.leaderboard import deciding_metric
    from rankbeam.pipelines.show.parts import best_by
    from rankbeam.pipelines.start.winner import write_winner

    results = find_run(folder, experiment=experiment)
    written = write_winner(path, results, name)
    if sentence := best_by(results, deciding_metric(results)):
        click.echo(sentence)
    click.echo(f"wrote {path}: {written}")
    click.echo(
        f"next: name queries that the sweep has not seen under dataset: in {path}, then rankbeam evaluate {path}"
    )


def _write_example(folder: str, name: str) -> Iterator[str]:
    from rankbeam.pipelines.start.first_experiment import EXAMPLES, example, write_files

    paths = {Path(folder) / inside: content for inside, content in example(name).items()}
    # Examples share the helpdesk collection, so an equal file is from another one.
    contents = {path: text for path, text in paths.items() if not (path.is_file() and path.read_bytes() == text)}
    with write_files(contents):
        about = "; its README.md describes them" if name == _HELPDESK else ""
        yield f"wrote {folder}: {len(contents)} files{about}"
    yield from (f"next: {command.format(folder)}" for command in EXAMPLES[name].commands)


def _write_experiment(
    name: str, arguments: Sequence[str], template: str | None, files: dict[str, str], columns: Sequence[str]
) -> Iterator[str]:
    from rankbeam.pipelines.experiment.dataset_checks import refuse_disjoint
    from rankbeam.pipelines.experiment.file.schema import as_json
    from rankbeam.pipelines.experiment.load import load_experiment
    from rankbeam.pipelines.start.cases import columns_of
    from rankbeam.pipelines.start.first_experiment import SCHEMA, from_cases, from_runs, from_template, write_files

    path, schema = Path(name), Path(name).parent / SCHEMA
    if len(arguments) == 1:
        first = from_cases(path, arguments[0], columns_of(columns))
    elif arguments:
        first = from_runs(path, arguments, files.get("queries"))
    else:
        first = from_template(path, template or "bm25", files)
    schema_file = {} if schema.exists() else {schema: as_json().encode()}
    with write_files({**first.sample, **schema_file, path: first.text.encode()}):
        refuse_disjoint(load_experiment(str(path)))
    for sample in first.sample:
        yield f"wrote {sample}: from the helpdesk example; replace it with your own"
    yield from (f"wrote {name}: with it, editors complete and check the experiment" for name in schema_file)
    yield f"wrote {path}"
    yield f"next: {_PREPARATIONS.get(template or '', '').format(path)}rankbeam evaluate {path}"


def _with_name(words: Sequence[str]) -> Iterator[str]:
    """The words, with a name for a bare `--example`: a known or misspelt name that follows it, else helpdesk."""
    named = False
    for place, word in enumerate(words):
        if word == _EXAMPLE:
            following = words[place + 1 : place + 2]
            matches = following and get_close_matches(following[0], _EXAMPLES.choices, cutoff=_SAME_NAME)
            named = bool(matches) and following[:1] != [_HELPDESK]
            yield f"{_EXAMPLE}={following[0] if named else _HELPDESK}"
        elif not named:
            yield word
        else:
            named = False


def _repeat_option(words: Sequence[str]) -> Iterator[str]:
    follows_from = False
    for place, word in enumerate(words):
        if word == "--":
            yield from words[place:]
            return
        if word == _FROM and not words[place + 1 : place + 2]:
            yield word  # click says what is missing
        elif word == _FROM:
            follows_from = True
        elif follows_from and not word.startswith("-"):
            yield from (_FROM, word)
        else:
            follows_from = False
            yield word


def _refuse_mixed(
    arguments: Sequence[str], template: str | None, files: dict[str, str], columns: Sequence[str], *, example: bool
) -> None:
    if example and (arguments or template or files):
        raise click.UsageError("--example writes its own files; leave out the other options")
    if "answers" in files and template not in _ANSWERING:
        raise click.UsageError(f"--answers is for the templates {', '.join(_ANSWERING)}")
    if columns and len(arguments) != 1:
        raise click.UsageError(f"--column is for {_FROM} FILE, one file of answers")
    if arguments and (template or files.keys() - {"queries"}):
        raise click.UsageError(f"{_FROM} already names the judgements; only --queries can be used with it")


def _refuse_elsewhere(path: str | None) -> None:
    from rankbeam.transforms.clients.storage import files
    from rankbeam.transforms.records.errors import InputError

    if path == "-":
        raise InputError("is standard output; name the file to write", path=path)
    if path is not None and not files.is_local(path):
        raise InputError("is not on this machine; write it here, and copy it there", path=path)
