"""The commands that look before a run: validate, plan and ledger."""

import click

from rankbeam.pipelines.cli.group import TABLE_OR_JSON, allow_disjoint, main, messages, warn


@main.command()
@click.argument("experiment")
@allow_disjoint
def validate(experiment: str, allow_disjoint: bool) -> None:
    """Check EXPERIMENT and the files it names, without running anything.

    Judgements are read, and of runs and the corpus as much as shows that they name the same queries and documents.
    What is in BigQuery is only looked up.

    \b
    Example:
      rankbeam validate examples/helpdesk/experiment.yaml
    """
    with messages():
        from rankbeam.pipelines.experiment import dataset_checks
        from rankbeam.pipelines.experiment.load import load_experiment

        found = load_experiment(experiment)
        evaluation = found.evaluation
        if not allow_disjoint:
            dataset_checks.refuse_disjoint(found)
        for warning in evaluation.warnings():
            warn(warning)
        click.echo(
            f"{experiment}: good. {_number(len(evaluation.configurations), 'configuration')} from "
            f"{_number(len(evaluation.sources), 'retriever or run', 'retrievers or runs')}, "
            f"{_number(len(evaluation.metrics), 'metric')}."
        )


@main.command()
@click.argument("experiment")
@click.option("--output", metavar="DIR", help="The folder of results, instead of the experiment's output.path.")
@allow_disjoint
@click.option("--format", "form", type=TABLE_OR_JSON, default="table", show_default=True)
def plan(experiment: str, output: str | None, allow_disjoint: bool, form: str) -> None:
    """Say what EXPERIMENT would cost, before any call is made.

    Calls per quota pool, minutes at the quota, what the ledger holds already, configurations that are derived from
    others, and the price where `quotas:` names one.

    \b
    Example:
      rankbeam plan examples/rag_engine.yaml
    """
    with messages():
        from dataclasses import replace

        from rankbeam.pipelines.experiment.load import load_experiment
        from rankbeam.pipelines.run.plan import plan_of

        found = load_experiment(experiment).with_disjoint(allow_disjoint)
        found = found if output is None else replace(found, output=output)
        for warning in found.evaluation.warnings():
            warn(warning)
        planned = plan_of(found)
        for warning in planned.warnings:
            click.echo(f"warning: {warning}", err=True)
        click.echo(planned.as_json() if form == "json" else planned.as_text())


@main.command()
@click.argument("place")
@click.option("--clear", is_flag=True, help="Delete the answers; calls are made, and paid for, again.")
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="With --clear: only older answers.")
@click.option("--compact", is_flag=True, help="Merge small files into few; no answer is lost, and runs may go on.")
@click.option("--format", "form", type=TABLE_OR_JSON, default="table", show_default=True)
def ledger(place: str, clear: bool, older_than: float | None, compact: bool, form: str) -> None:
    """Show the ledger of finished calls, clear it, or merge its files.

    PLACE is an output folder, a ledger's own folder, or an experiment (a YAML file). Damaged files are named with what
    is wrong. Runs merge files by themselves when there are many.

    \b
    Examples:
      rankbeam ledger out/helpdesk
      rankbeam ledger out/helpdesk --clear --older-than 30
      rankbeam ledger out/helpdesk --compact
    """
    with messages():
        from rankbeam.pipelines.run import ledger as book

        click.echo(book.run(place, clear, older_than, form, compact=compact))


def _number(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
