"""The commands that inspect an experiment before a run: validate, plan and ledger; and its schema."""

from dataclasses import replace

import click

from rankbeam.pipelines.cli.group import FloatRange, allow_disjoint, confirm_deletion, main, shown_as, wide
from rankbeam.pipelines.local.messages import warn
from rankbeam.transforms.records.errors import json_text

_AMOUNT = FloatRange(min=1e-9, max=1e9)  # in units of the metric, which may also be tokens
_POWER = 0.8
_SHARE = FloatRange(min=0, max=1, min_open=True, max_open=True)


@main.command()
@click.argument("experiment")
@click.option(
    "--online", is_flag=True, help="Also test addresses and keys of services, with requests that cost nothing."
)
@allow_disjoint
def validate(experiment: str, online: bool, allow_disjoint: bool) -> None:
    """Check EXPERIMENT and the files it names, without running anything.

    Judgements are read in full; runs and the corpus are only read until they share a query and a document with the
    judgements. BigQuery tables are checked without reading their rows.

    \b
    Example:
      rankbeam validate examples/helpdesk/experiment.yaml
      rankbeam validate examples/openai.yaml --online
    """
    from rankbeam.pipelines.experiment import dataset_checks
    from rankbeam.pipelines.experiment.load import load_experiment
    from rankbeam.transforms.records.errors import pluralize

    loaded = load_experiment(experiment)
    evaluation = loaded.evaluation
    if not allow_disjoint:
        dataset_checks.refuse_disjoint(loaded)
    warn(*evaluation.warnings(), *loaded.unset_variables(experiment))
    click.echo(
        f"{experiment}: valid. {pluralize(len(evaluation.configurations), 'configuration')} from "
        f"{pluralize(len(evaluation.sources), 'retriever or run', 'retrievers or runs')}, "
        f"{pluralize(len(evaluation.metrics), 'metric')}."
    )
    if online:
        from rankbeam.pipelines.experiment.online import check_online

        for line in check_online(loaded):
            click.echo(line)


@main.command()
@click.argument("experiment")
@click.option("--output", metavar="DIR", help="The folder of results, instead of the experiment's output.path.")
@click.option(
    "--detect", type=_AMOUNT, metavar="D", help="Also show how many queries are needed to detect a difference of D."
)
@click.option(
    "--power",
    type=_SHARE,
    metavar="SHARE",
    default=_POWER,
    show_default=True,
    help="With --detect: probability of detecting the difference.",
)
@click.option("--sd", type=_AMOUNT, metavar="SD", help="With --detect: standard deviation of the queries' differences.")
@allow_disjoint
@shown_as()
@wide
def plan(
    experiment: str,
    output: str | None,
    detect: float | None,
    power: float,
    sd: float | None,
    allow_disjoint: bool,
    form: str,
    wide: bool,
) -> None:
    """Show what EXPERIMENT would cost, before any call is made.

    The plan shows calls per quota pool, minutes at the quota, calls that the ledger already has, configurations that
    are derived from others, the cost if `quotas:` sets prices, and the bytes of BigQuery tables and queries.

    With --detect, a table shows how many queries each metric needs to detect a difference between two configurations,
    and what they cost. The standard deviation comes from --sd, else from the latest run in the output folder, else from
    TREC runs; for other bounded metrics, such as judged ones, it is an assumption, which the table names.

    \b
    Examples:
      rankbeam plan examples/rag_engine.yaml
      rankbeam plan examples/rag_engine.yaml --detect 0.02
    """
    if detect is None and (sd is not None or power != _POWER):
        raise click.UsageError("--power and --sd are for --detect")
    from rankbeam.pipelines.experiment.load import load_experiment
    from rankbeam.pipelines.plan.detect import DetectionQuestion, detection_of, race_line
    from rankbeam.pipelines.plan.plan import plan_of
    from rankbeam.pipelines.run.folders import prepared_folders
    from rankbeam.pipelines.show.tabular import Screen

    loaded = load_experiment(experiment).with_disjoint(allow_disjoint)
    loaded = loaded if output is None else replace(loaded, output=output)
    warn(*loaded.evaluation.warnings(), *loaded.unset_variables(experiment))
    with prepared_folders(replace(loaded, is_private=False)):  # a plan writes nothing there
        planned = plan_of(loaded, experiment)
        question = None if detect is None else DetectionQuestion(detect, power, sd)
        detection = None if question is None else detection_of(loaded, question, planned, experiment)
    warn(*planned.warnings, *(() if detection is None else detection.warnings))
    if form == "json":
        document = planned.as_document() | ({} if detection is None else {"detect": detection.as_document()})
        click.echo(json_text(document))
        return
    race = "" if planned.queries is None else race_line(loaded, planned.queries)
    screen = Screen.of(wide=wide)
    parts = [planned.as_text(screen), screen.prose(race) if race else ""]
    parts += [] if detection is None else [detection.as_text(screen)]
    click.echo("\n\n".join(filter(None, parts)))


@main.command()
@click.argument("place")
@click.option("--clear", is_flag=True, help="Delete the answers; the next run makes, and pays for, the calls again.")
@click.option("--older-than", type=FloatRange(min=0), metavar="DAYS", help="With --clear: only older answers.")
@click.option("--service", metavar="NAME", help="With --clear: only answers of this model or configuration.")
@click.option("--compact", is_flag=True, help="Merge small files into a few; keeps all answers, even during a run.")
@click.option("--yes", is_flag=True, help="With --clear: do not ask for confirmation.")
@shown_as()
def ledger(
    place: str, clear: bool, older_than: float | None, service: str | None, compact: bool, yes: bool, form: str
) -> None:
    """Show the ledger of finished calls, clear it, or merge its files.

    PLACE is an output folder, a ledger's own folder, or an experiment (a YAML file). Damaged files are listed with the
    reason. Runs merge the files automatically when there are many. --clear asks for confirmation.

    \b
    Examples:
      rankbeam ledger out/helpdesk
      rankbeam ledger out/helpdesk --clear --older-than 30
      rankbeam ledger out/helpdesk --clear --service judge
      rankbeam ledger out/helpdesk --compact
    """
    if yes and not clear:
        raise click.UsageError("--yes is for --clear")
    from rankbeam.pipelines.manage import ledger as ledger_command
    from rankbeam.pipelines.show.tabular import Screen

    if clear and not compact and not confirm_deletion(ledger_command.question(place, older_than, service), yes=yes):
        return
    screen = Screen.of()
    text = ledger_command.run(place, clear, older_than, form, service=service, compact=compact, screen=screen)
    click.echo(text)


@main.command()
def schema() -> None:
    """Print the JSON Schema of the experiment file, with the parameters of every type that is installed.

    Editors complete and check an experiment that names the schema in a comment, as `rankbeam init` writes it:
    # yaml-language-server: $schema=rankbeam.schema.json

    \b
    Example:
      rankbeam schema > rankbeam.schema.json
    """
    from rankbeam.pipelines.experiment.file.schema import as_json

    click.echo(as_json(), nl=False)
