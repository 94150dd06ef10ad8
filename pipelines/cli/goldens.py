"""The commands that make a benchmark from documents, and that people review, correct and export it with."""

from typing import TYPE_CHECKING

import click

from rankbeam.pipelines.cli.group import TABLE_OR_JSON, main
from rankbeam.pipelines.run.interrupt import Interrupted, finish_calls, in_background
from rankbeam.pipelines.run.messages import MISSED, leave, messages, warn

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

    from rankbeam.pipelines.goldens.goldens import Goldens
    from rankbeam.pipelines.goldens.make import Outcome
    from rankbeam.transforms.goldens.planning import Plan

_MAKE = "make"
_BEAM = {"ignore_unknown_options": True, "allow_interspersed_args": True}


class _Goldens(click.Group):
    """Makes a benchmark where the first word is no command."""

    def resolve_command(
        self, context: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = words and words[0] in self.commands
        return super().resolve_command(context, words if known else [_MAKE, *words])


@main.group(cls=_Goldens, context_settings={"ignore_unknown_options": True})
def goldens() -> None:
    """Make a benchmark from documents: questions, answers, evidence and judgements.

    `rankbeam goldens FILE.yaml` makes it; a run that was stopped goes on where it was, and pays for nothing twice.

    \b
    Examples:
      rankbeam goldens plan examples/goldens.yaml
      rankbeam goldens examples/goldens.yaml --output out/goldens
      rankbeam goldens review out/goldens > review.csv
      rankbeam goldens apply out/goldens review.csv
      rankbeam goldens export out/goldens --format adk --output helpdesk.evalset.json
    """


@goldens.command(_MAKE, context_settings=_BEAM)
@click.argument("file")
@click.option("--output", metavar="DIR", help="Write to this folder instead of the file's output.")
@click.argument("beam_options", nargs=-1, type=click.UNPROCESSED, metavar="[BEAM OPTIONS]")
def make(file: str, output: str | None, beam_options: tuple[str, ...]) -> None:
    """Make the benchmark that FILE (YAML) describes. `rankbeam goldens FILE` is the same.

    All options of Apache Beam pass through. Exit status: 0 done, 3 done but questions are missing.

    \b
    Example:
      rankbeam goldens examples/goldens.yaml --output out/goldens
    """
    with messages():
        from rankbeam.pipelines.goldens.load import load_goldens
        from rankbeam.pipelines.goldens.plan import costs_of, refuse_above_budget
        from rankbeam.pipelines.goldens.rounds import plan_of
        from rankbeam.pipelines.run.options import pipeline_options

        own = [name for parameter in click.get_current_context().command.params for name in parameter.opts]
        options = pipeline_options(beam_options, own)
        loaded = load_goldens(file, output)
        plan = plan_of(loaded)
        if loaded.max_cost is not None:
            refuse_above_budget(loaded, costs_of(loaded, plan), file)
        outcome = _made(loaded, plan, options)
        for warning in outcome.warnings:
            warn(warning)
        calls = f"{outcome.calls:,} calls, {outcome.hits:,} more from the ledger"
        paid = "" if outcome.cost is None else f", cost {outcome.cost:,.4g}"
        click.echo(f"{loaded.output}: {outcome.items:,} of {loaded.wanted.items:,} questions ({calls}{paid})")
        if outcome.missing or outcome.failed:
            leave(f"{outcome.missing:,} questions are missing", MISSED)


def _made(goldens: "Goldens", plan: "Plan", options: "PipelineOptions") -> "Outcome":
    from rankbeam.pipelines.goldens.make import make as make_goldens
    from rankbeam.pipelines.goldens.progress import CallsOfPools
    from rankbeam.pipelines.run.progress import shown
    from rankbeam.transforms.clients.storage import spill

    try:
        with shown(CallsOfPools(0, 0, goldens.pools)):
            return in_background(lambda: make_goldens(goldens, plan, options))
    except KeyboardInterrupt:
        folder = spill.folder()
        raise Interrupted([] if folder is None else [folder], finish_calls(goldens.ledger)) from None


@goldens.command()
@click.argument("file")
@click.option("--output", metavar="DIR", help="The folder of the benchmark, instead of the file's output.")
@click.option("--format", "form", type=TABLE_OR_JSON, default="table", show_default=True)
def plan(file: str, output: str | None, form: str) -> None:
    """Show what making the benchmark of FILE would cost, before any call is made.

    Shown are questions by type, and calls, tokens, minutes and cost by step: at least, where every question is
    accepted, and where every second one is rejected.

    \b
    Example:
      rankbeam goldens plan examples/goldens.yaml
    """
    with messages():
        from rankbeam.pipelines.goldens.load import load_goldens
        from rankbeam.pipelines.goldens.plan import costs_of
        from rankbeam.pipelines.goldens.rounds import plan_of

        loaded = load_goldens(file, output)
        costs = costs_of(loaded, plan_of(loaded))
        click.echo(costs.as_json() if form == "json" else costs.as_text())
