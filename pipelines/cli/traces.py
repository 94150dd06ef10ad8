"""The command that makes a dataset from production traces."""

import re

import click

from rankbeam.pipelines.cli.group import main, with_standard_input

_SERVICE_HELP = "The judge: a type, or '{type: gemini, model: …, …}'. lexical compares words, offline."
_QUESTION_HELP = "Path of the question in inputs that are JSON, such as question or messages[-1].content."
_ANSWER_HELP = "Path of the answer in outputs that are JSON."
_DOCUMENTS_HELP = "Path of the list of documents in results of tools, such as results."
_SELF_HELP = "Leave out retrieved documents that equal their question, for a corpus of past questions."
_CONFIGURATION_HELP = "Attribute that names the system that answered."


@main.command()
@click.argument("source", metavar="FILE")
@click.option("--output", metavar="DIR", required=True, help="Folder for queries, answers and the experiment.")
@click.option("--question", metavar="PATH", help=_QUESTION_HELP)
@click.option("--answer", metavar="PATH", help=_ANSWER_HELP)
@click.option("--documents", metavar="PATH", help=_DOCUMENTS_HELP)
@click.option("--configuration", metavar="NAME", default="service.version", show_default=True, help=_CONFIGURATION_HELP)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Keep N traces, chosen by a hash of their ids.")
@click.option("--per-day", is_flag=True, help="Keep --sample N traces of each day.")
@click.option("--redact", metavar="REGEX", multiple=True, help="Replace matches in all texts before they are stored.")
@click.option("--drop-self", is_flag=True, help=_SELF_HELP)
@click.option("--service", metavar="TYPE", default="lexical", show_default=True, help=_SERVICE_HELP)
def traces(
    source: str,
    output: str,
    question: str | None,
    answer: str | None,
    documents: str | None,
    configuration: str,
    sample: int | None,
    per_day: bool,
    redact: tuple[str, ...],
    drop_self: bool,
    service: str,
) -> None:
    """Make a dataset from the traces in FILE: users' questions, contexts and answers.

    FILE is a file, or a pattern, of OTLP JSON (OpenTelemetry's GenAI conventions or OpenInference), spans that Phoenix
    exports, traces of Langfuse with their observations, runs of LangSmith, or ADK's table agent_events, in BigQuery or
    exported from it.
    - is standard input. The command writes queries.jsonl, answers.jsonl and experiment.yaml into DIR.

    \b
    Examples:
      rankbeam traces spans.jsonl --output production
      rankbeam traces 'spans/*.jsonl' --output production --sample 500 --per-day --redact '\\S+@\\S+'
      rankbeam traces bigquery://project.dataset.agent_events --output production --documents results
      rankbeam evaluate production/experiment.yaml
    """
    if per_day and sample is None:
        raise click.UsageError("--per-day belongs to --sample N")
    for pattern in redact:
        try:
            re.compile(pattern)
        except re.error as error:
            raise click.UsageError(f"--redact {pattern!r} is not a regular expression: {error}") from error
    with with_standard_input((source,)) as (source,):
        from rankbeam.pipelines.run.folders import sole_writer
        from rankbeam.pipelines.start.cases import service_of
        from rankbeam.pipelines.traces import collect
        from rankbeam.transforms.clients.formats.traces.turns import Naming
        from rankbeam.transforms.clients.models.base import MODELS
        from rankbeam.transforms.clients.storage.json_paths import check_path
        from rankbeam.transforms.records.errors import InputError
        from rankbeam.transforms.traces import Choice

        for option, path in (("--question", question), ("--answer", answer), ("--documents", documents)):
            try:
                check_path(path or "text")
            except ValueError as error:
                raise InputError(f"{option} {error}") from error
        naming = Naming(question, answer, configuration, documents)
        judge = service_of(service, list(MODELS.types))
        choice = Choice(sample, per_day, redact, drop_self)
        with sole_writer(output, "traces", "this dataset", "--output"):
            collected = collect(source, output, naming, choice, judge)
        click.echo(collected.as_text())
        click.echo(f"next: rankbeam evaluate {output.rstrip('/')}/experiment.yaml")
