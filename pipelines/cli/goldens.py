"""The commands that make a benchmark from documents, and let people review, correct and export it."""

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from rankbeam.pipelines.cli.group import Group, main, own_options, shown_as
from rankbeam.pipelines.local.interrupt import Interrupted, finish_calls, in_background
from rankbeam.pipelines.local.messages import MISSED, leave, warn
from rankbeam.transforms.records.errors import pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apache_beam.options.pipeline_options import PipelineOptions

    from rankbeam.pipelines.goldens.goldens import Goldens
    from rankbeam.pipelines.goldens.make import Outcome
    from rankbeam.pipelines.portable.service import JobService
    from rankbeam.transforms.goldens.planning import GoldensPlan

_MAKE = "make"
_CANCELLING_S = 90.0
_FORMATS = ["adk", "adk_list", "auto_rag_eval", "beir", "csv", "ragas", "trec", "vertex"]
_BEAM = {"ignore_unknown_options": True, "allow_interspersed_args": True}


class _Goldens(Group):
    """Makes a benchmark if the first word is a path, with a dot or a slash, which no command has."""

    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_path = any(mark in words[0] for mark in "./")
        return super().resolve_command(context, [_MAKE, *words] if is_path else words)


@main.group(cls=_Goldens, context_settings={"ignore_unknown_options": True})
def goldens() -> None:
    """Make a benchmark from documents: questions, answers, evidence and judgements.

    `rankbeam goldens FILE.yaml` makes the benchmark; an interrupted run continues where it stopped, and pays for
    nothing twice.

    \b
    Examples:
      rankbeam goldens plan examples/goldens/helpdesk.yaml
      rankbeam goldens examples/goldens/helpdesk.yaml --output out/goldens
      rankbeam goldens review out/goldens > review.csv
      rankbeam goldens apply out/goldens review.csv
      rankbeam goldens export out/goldens --format adk --output evalset.json
    """


@goldens.command(_MAKE, context_settings=_BEAM)
@click.argument("file")
@click.option("--output", metavar="DIR", help="Write to this folder instead of the file's output.")
@click.argument("beam_options", nargs=-1, type=click.UNPROCESSED, metavar="[BEAM OPTIONS]")
def make(file: str, output: str | None, beam_options: tuple[str, ...]) -> None:
    """Make the benchmark that FILE (YAML) describes. `rankbeam goldens FILE` is the same.

    All options of Apache Beam are passed on. Exit status: 0 done, 3 done but questions are missing or have failed.

    \b
    Example:
      rankbeam goldens examples/goldens/helpdesk.yaml --output out/goldens
    """
    from rankbeam.pipelines.goldens.load import load_goldens
    from rankbeam.pipelines.goldens.plan import costs_of, refuse_above_budget
    from rankbeam.pipelines.goldens.rounds import plan_of
    from rankbeam.pipelines.goldens.stages import refuse_dataflow, refuse_local
    from rankbeam.pipelines.run.options import is_portable, pipeline_options
    from rankbeam.transforms.clients.storage import files

    options = pipeline_options(beam_options, own_options())
    refuse_dataflow(options)
    # An engine's workers have another current folder.
    place = files.absolute if is_portable(options) else str
    loaded = load_goldens(place(file), None if output is None else place(output))
    refuse_local(loaded, options)
    plan = plan_of(loaded)
    if loaded.calls.max_cost is not None:
        refuse_above_budget(loaded, costs_of(loaded, plan), file)
    outcome = _outcome(loaded, plan, options, beam_options)
    warn(*outcome.warnings)
    calls = f"{pluralize(outcome.calls, 'call')}, {outcome.hits:,} more from the ledger"
    paid = "" if outcome.cost is None else f", cost {outcome.cost:,.4g}"
    click.echo(f"{loaded.output}: {outcome.items:,} of {pluralize(loaded.planned.items, 'question')} ({calls}{paid})")
    missing = [f"{pluralize(outcome.missing, 'question is', 'questions are')} missing"] if outcome.missing else []
    failed = [f"{pluralize(outcome.failed, 'question')} failed and may succeed later"] if outcome.failed else []
    if missing or failed:
        leave("; ".join([*missing, *failed]), MISSED)


def _outcome(
    goldens: "Goldens", plan: "GoldensPlan", options: "PipelineOptions", beam_options: "Sequence[str]"
) -> "Outcome":
    from rankbeam.pipelines.goldens.make import make as make_goldens
    from rankbeam.pipelines.local.progress import CallsOfPools, show_progress
    from rankbeam.pipelines.portable.job_server import job_server
    from rankbeam.pipelines.run.options import is_portable, refuse_unknown
    from rankbeam.transforms.clients.storage import spill

    with ExitStack() as stack:
        service = None
        if is_portable(options):
            service = stack.enter_context(job_server(options))
            refuse_unknown(beam_options, own_options(), service.options())
        else:  # temporary indexes are in the same folder, which is deleted with it
            stack.enter_context(spill.spilling())
        try:
            with show_progress(CallsOfPools(0, 0, goldens.calls.pools)):
                return in_background(lambda: make_goldens(goldens, plan, options))
        except KeyboardInterrupt:
            folder = spill.folder()
            outcome = finish_calls(goldens.ledger) if service is None else _cancel_jobs(goldens, service)
            raise Interrupted([] if folder is None else [folder], outcome) from None


def _cancel_jobs(goldens: "Goldens", service: "JobService") -> str:
    """Cancel an engine's job, which would go on with its calls; return a message about what was stored."""
    from rankbeam.pipelines.goldens.stages import at_work

    jobs = at_work()
    for job_id, ledger in jobs.items():
        try:
            service.cancel(job_id)
        finally:  # after telling the engine, which would otherwise take the end of the calls for a failure
            ledger.request_stop()
    outcome = finish_calls(goldens.ledger)
    for job_id in jobs:
        service.wait_until_ended(job_id, _CANCELLING_S)
    return f"the job is cancelled; {outcome}"


@goldens.command()
@click.argument("file")
@click.option("--output", metavar="DIR", help="The folder of the benchmark, instead of the file's output.")
@shown_as()
def plan(file: str, output: str | None, form: str) -> None:
    """Show what making the benchmark of FILE would cost, before any call is made.

    The output shows questions by type, and the lowest and highest calls, tokens, minutes and cost by step: the lowest
    if every question is accepted, the highest if every second one is rejected.

    \b
    Example:
      rankbeam goldens plan examples/goldens/helpdesk.yaml
    """
    from rankbeam.pipelines.goldens.load import load_goldens
    from rankbeam.pipelines.goldens.plan import costs_of
    from rankbeam.pipelines.goldens.rounds import plan_of
    from rankbeam.pipelines.show.tabular import Screen

    loaded = load_goldens(file, output)
    questions = plan_of(loaded)
    warn(*questions.library.warnings)
    costs = costs_of(loaded, questions)
    click.echo(costs.as_json() if form == "json" else Screen.of().prose(costs.as_text(), indent="    "))


@goldens.command()
@click.argument("file")
@click.option("--sample", type=click.IntRange(1, 100), metavar="N", default=12, show_default=True,
              help="Number of texts to show the model, from all topics in turn.")  # fmt: skip
@click.option("--output", metavar="PROFILES.json", help="The file to write, instead of the one that FILE names.")
@click.option("--plan", "only_plan", is_flag=True, help="Show the call and its cost without making it.")
def profiles(file: str, sample: int, output: str | None, only_plan: bool) -> None:
    """Let the writer of FILE suggest profiles from a sample of the documents; questions vary by profile.

    This writes the file that `profiles:` in FILE names, or profiles.json beside FILE. It can be used only after a
    person has read and edited it and changed `"accepted": false` to true.

    \b
    Example:
      rankbeam goldens profiles examples/goldens/gemini.yaml --output suggested.json
    """
    from rankbeam.pipelines.goldens.load import load_goldens
    from rankbeam.pipelines.goldens.profiles import forecast, forecast_text, suggest, suggestion_of
    from rankbeam.pipelines.goldens.rounds import plan_of
    from rankbeam.pipelines.run.options import pipeline_options

    loaded = load_goldens(file, profiles=False)
    suggestion = suggestion_of(loaded, plan_of(loaded), file, output or loaded.profiles, sample)
    if only_plan:
        click.echo(forecast_text(suggestion, forecast(suggestion)))
        return
    suggested, warnings = suggest(suggestion, pipeline_options((), ()))
    warn(*warnings)
    if suggested.problem:
        leave(f"no profiles were suggested: {suggested.problem}", MISSED)
    names = ", ".join(
        f"{dimension.name} ({pluralize(len(dimension.values), 'value')})" for dimension in suggested.dimensions
    )
    click.echo(f"{suggestion.path}: {names}; read and edit it, then set accepted to true")


@goldens.command()
@click.argument("folder", metavar="DIR")
@click.option("--output", metavar="FILE", help="Write to this file instead of standard output.")
def review(folder: str, output: str | None) -> None:
    """Write the benchmark in DIR as a table (CSV) for people to review.

    In the column `decision`, they write accept, reject, edit or nothing; with edit, they change the question, the
    answer, or the quotes (one per line). Cells that a spreadsheet program could interpret as formulas begin with an
    apostrophe.

    \b
    Example:
      rankbeam goldens review out/goldens --output review.csv
    """
    from rankbeam.pipelines.goldens.folder import GoldensFolder
    from rankbeam.pipelines.goldens.review import as_csv
    from rankbeam.transforms.clients.storage import files, whole_files
    from rankbeam.transforms.records.errors import InputError

    text = as_csv(GoldensFolder(folder))
    if output is None:
        click.echo(text, nl=False)
    elif files.exists(output) and files.read_all(output) != text.encode():
        raise InputError("exists already, and may have decisions; choose another path", path=output)
    else:
        whole_files.put(output, text.encode())


@goldens.command()
@click.argument("folder", metavar="DIR")
@click.argument("tables", metavar="REVIEW.csv [SECOND.csv]", nargs=-1, required=True)
def apply(folder: str, tables: tuple[str, ...]) -> None:
    """Apply people's decisions about the benchmark in DIR, from tables that `review` wrote.

    A table with a mistake is refused as a whole, and each mistake is reported with its line. Edited quotes must occur
    in their document. With the tables of two reviewers, their agreement (Cohen's kappa) is shown, and items on which
    they disagree are not changed.

    \b
    Example:
      rankbeam goldens apply out/goldens review.csv
    """
    from rankbeam.pipelines.goldens.folder import GoldensFolder
    from rankbeam.pipelines.goldens.review import apply as apply_tables
    from rankbeam.pipelines.show.tabular import Screen

    if len(tables) > 2:
        raise click.UsageError("give one table, or the tables of two reviewers")
    click.echo(Screen.of().prose(apply_tables(GoldensFolder(folder), tables).as_text()))


@goldens.command()
@click.argument("folder", metavar="DIR")
@click.option("--format", "form", type=click.Choice(_FORMATS), required=True)
@click.option("--output", metavar="PATH", required=True, help="The file to write; a folder for beir and trec.")
@click.option("--split", metavar="NAME", help="Only questions of this split.")
@click.option("--reviewed", "only_reviewed", is_flag=True, help="Only questions that a person accepted.")
def export(folder: str, form: str, output: str, split: str | None, only_reviewed: bool) -> None:
    """Write the benchmark in DIR in the format of another tool.

    \b
    adk             an EvalSet of Google's Agent Development Kit, one case per
                    question, rubrics from nuggets
    adk_list        the flat list of questions that Auto RAG Eval writes for
                    ADK; ADK 1 and later read it as one conversation
    auto_rag_eval   the benchmark.json of Google's Auto RAG Eval
    beir, trec      a folder with queries and judgements
    ragas           JSON lines: user_input, reference, reference_contexts
    csv             a table
    vertex          JSON lines for Vertex AI's Gen AI evaluation service:
                    prompt, reference, context

    \b
    Example:
      rankbeam goldens export out/goldens --format adk --output evalset.json
    """
    from rankbeam.pipelines.goldens.export import FORMATS, choose_items
    from rankbeam.pipelines.goldens.folder import GoldensFolder
    from rankbeam.transforms.clients.storage import files

    benchmark = GoldensFolder(folder)
    contents = FORMATS[form](choose_items(benchmark, split, only_reviewed=only_reviewed), output)
    benchmark.refuse_own(contents)
    for path, content in contents.items():
        files.write(path, content.encode("utf-8", "replace"))
        click.echo(path)
