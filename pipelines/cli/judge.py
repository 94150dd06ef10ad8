"""The commands for files of answers: judge one without an experiment file, and export results beside its rows."""

import re
from typing import Any

import click

from rankbeam.pipelines.cli.execute import run_here_and_show
from rankbeam.pipelines.cli.group import FloatRange, NamedRun, main, of_run, shown_as, wide, with_standard_input
from rankbeam.pipelines.local.messages import warn
from rankbeam.transforms.records.errors import pluralize

_SERVICE_HELP = "The judge: `lexical`, which compares words, or a model: '{type: gemini, model: …, project: …}'."
_JUDGE = "--service openai:MODEL, or --service lexical to try it without a model"
_COLUMN_HELP = "Key or JMESPath of a row's question, answer, contexts … Repeatable."
_METRIC_HELP = "Metric, such as Faithfulness; by default the criteria, or all that the rows allow. Repeatable."
_CRITERIA_HELP = "Your own criteria (YAML), such as Tone: Is the answer polite?; each is a metric."
_PRICES_HELP = "The judge's prices per million tokens, in any currency: '{input: 0.4, output: 1.6}'."
_MAX_COST_HELP = "Maximum cost of the calls at --prices, at which the run stops with status 3."
_OPTIONS = {
    r"^services\.judge\b\.?": "--service ",
    r"^services\.embedder\b\.?": "--embeddings ",
    r"^metrics\[\d+\]": "--metric",
    r"^max_(calls|tokens|cost)\b": r"--max-\1",
    r"make fewer calls \(.*": "judge fewer rows or metrics",
    r"^quotas\.judge\.price_per_million\b\.?": "--prices ",
    r"give quotas: {judge: .*}": "give --prices",
    r"give quotas: {embedder: .*}": "an experiment can price --embeddings, too: rankbeam init --from FILE",
}
"""Keys of the experiment that the options describe, and the words of its messages, in options."""

_column = click.option("--column", "columns", multiple=True, metavar="NAME=KEY", help=_COLUMN_HELP)


@main.command()
@click.argument("file", metavar="FILE")
@click.option("-m", "--metric", "metrics", multiple=True, metavar="METRIC", help=_METRIC_HELP)
@click.option("--criteria", metavar="FILE", help=_CRITERIA_HELP)
@click.option("--service", metavar="SERVICE", help=_SERVICE_HELP)
@click.option("--embeddings", metavar="SERVICE", help="The embedding model, for similarity metrics.")
@click.option("--requests-per-minute", "rate", type=FloatRange(min=0, min_open=True), metavar="N",
              help="The quota of each service.")  # fmt: skip
@click.option("--prices", metavar="PRICES", help=_PRICES_HELP)
@click.option("--max-cost", type=FloatRange(min=0), metavar="COST", help=_MAX_COST_HELP)
@click.option("--max-calls", type=click.IntRange(min=1), metavar="N", help="Refuse a plan with more calls.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Refuse a plan with more tokens.")
@_column
@shown_as()
@wide
@click.option("--output", metavar="DIR", help="Folder for the results; by default out/NAME.")
def judge(
    file: str,
    metrics: tuple[str, ...],
    criteria: str | None,
    service: str | None,
    embeddings: str | None,
    rate: float | None,
    prices: str | None,
    max_cost: float | None,
    max_calls: int | None,
    max_tokens: int | None,
    columns: tuple[str, ...],
    form: str,
    wide: bool,
    output: str | None,
) -> None:
    """Judge the answers in FILE, without an experiment file.

    FILE has rows of questions, answers and contexts, as ragas, DeepEval, promptfoo, LangSmith and other tools write
    them: JSON lines, JSON, CSV or Parquet; - is standard input. The planned calls are printed before the first one.

    \b
    Examples:
      rankbeam judge ragas.jsonl -m Faithfulness --service lexical
      rankbeam judge answers.jsonl --criteria criteria.yaml --service gemini:MODEL
      rankbeam judge answers.jsonl --service openai:MODEL \\
        --prices '{input: 0.4, output: 1.6}' --max-cost 5
      rankbeam judge answers.csv --column answer=reply \\
        --service '{type: openai, model: m, base_url: "http://localhost:8000/v1"}'
    """
    if max_cost is not None and prices is None:
        raise click.UsageError("--max-cost needs --prices '{input: …, output: …}', the prices per million tokens")
    if service is None and (criteria is not None or embeddings is not None or prices is not None or not metrics):
        raise click.UsageError(f"name the judge: {_JUDGE}")
    with with_standard_input((file,)) as (path,):
        import yaml

        from rankbeam.pipelines.api.experiments import name_of
        from rankbeam.pipelines.api.inputs import reword_errors
        from rankbeam.pipelines.experiment.file.criteria import read_criteria
        from rankbeam.pipelines.experiment.load import parse_experiment
        from rankbeam.pipelines.plan.limits import check_plan
        from rankbeam.pipelines.start import cases
        from rankbeam.transforms.clients.models.base import MODELS
        from rankbeam.transforms.records.errors import InputError

        stated = {cases.JUDGE: service, cases.EMBEDDER: embeddings}
        services = {name: cases.service_of(text, sorted(MODELS.types)) for name, text in stated.items() if text}
        questions = None if criteria is None else read_criteria(criteria)
        value: dict[str, Any] = cases.experiment_of(
            path, cases.columns_of(columns), metrics, services, rate, questions, cases.prices_of(prices), max_cost
        )
        text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
        named = name_of(value)

        def in_options(error: InputError) -> InputError:
            return InputError(_as_option(error.problem)) if error.path in (None, named) else error

        with reword_errors(in_options):
            experiment = parse_experiment(text, named, output or f"out/{value['name']}")
            check_plan(experiment, {"calls": max_calls, "tokens": max_tokens})
            run_here_and_show(experiment, named, form, wide=wide)


def _as_option(problem: str) -> str:
    """A problem of the experiment that the options describe, naming the option instead of the key.

    >>> _as_option("services.judge.base_url: is missing"), _as_option("metrics[0]: unknown metric 'x'")
    ('--service base_url: is missing', "--metric: unknown metric 'x'")
    """
    problem = problem.replace("judge: {service: NAME}", _JUDGE)
    problem = problem.replace("judge: {service: NAME, embeddings: NAME}", "--service and --embeddings")
    for pattern, words in _OPTIONS.items():
        problem = re.sub(pattern, words, problem)
    return problem


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--like", "like", required=True, metavar="FILE", help="The file whose rows were evaluated.")
@click.option("--output", required=True, metavar="NEW", help="The copy; it must not exist.")
@click.option("--events", is_flag=True, help="Write OpenTelemetry events instead of a copy: gen_ai.evaluation.result.")
@click.option(
    "--configuration",
    metavar="NAME",
    help="Configuration whose results are written; by default the one that replays FILE.",
)
@_column
@of_run
def export(
    named: NamedRun, like: str, output: str, events: bool, configuration: str | None, columns: tuple[str, ...]
) -> None:
    """Write a copy of FILE with the results in DIR: a column for each metric, and one for the status.

    Rows keep their order, and FILE itself is never changed. In a file of conversations, such as an ADK eval set, the
    values are lists with one entry for each turn. With --events, scores become events of the traces in FILE, which
    `rankbeam traces` wrote.

    \b
    Examples:
      rankbeam export out/ragas --like ragas.jsonl --output judged.jsonl
      rankbeam export production/out --like production/answers.jsonl --output scores.jsonl --events
    """
    from rankbeam.pipelines.show.copies import write_events, write_rows
    from rankbeam.pipelines.start.cases import columns_of
    from rankbeam.transforms.clients.formats.cases.source import CaseSource

    results = named.find()
    source = CaseSource(like, columns_of(columns), flatten=True)
    copied = (write_events if events else write_rows)(results, source, output, configuration)
    if copied.unmatched:
        warn(f"{copied.unmatched:,} of {copied.rows:,} {copied.unit} were not evaluated in {results.named}")
    click.echo(output)


@main.command()
@click.argument("experiment", metavar="FILE")
@click.option("--output", required=True, metavar="NEW",
              help="The new file, such as agent.evalset.json or dataset.jsonl.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["adk", "vertex"]), default="adk", show_default=True,
              help="Tool that reads the file.")  # fmt: skip
@click.option("--configuration", metavar="NAME", help="Add this configuration's answers from the last run (vertex).")
def evalset(experiment: str, output: str, form: str, configuration: str | None) -> None:
    """Write the dataset of the experiment in FILE for another tool.

    \b
    adk       an EvalSet for `adk eval`: each conversation is a case with all
              its turns, reference answers are expected responses, expected
              steps are expected tool uses; turns without a query come from
              the history of later ones
    vertex    JSON lines for Vertex AI's Gen AI evaluation service: each query
              is a row of prompt, reference and conversation_history; with
              --configuration also response, context and trajectory

    \b
    Examples:
      rankbeam evalset experiment.yaml --output agent.evalset.json
      rankbeam evalset experiment.yaml --format vertex --configuration prod --output dataset.jsonl
    """
    if form == "vertex":
        _vertex_rows(experiment, output, configuration)
        return
    if configuration is not None:
        raise click.UsageError("--configuration adds answers to a file of --format vertex; leave it out")
    from rankbeam.pipelines.experiment.load import load_experiment
    from rankbeam.pipelines.start.eval_sets import write_eval_set

    path, cases, queries = write_eval_set(load_experiment(experiment), output)
    click.echo(f"{path}: {queries:,} queries in {cases:,} cases")


def _vertex_rows(experiment: str, output: str, configuration: str | None) -> None:
    from rankbeam.pipelines.experiment.load import load_experiment
    from rankbeam.pipelines.start.eval_sets import write_vertex_rows

    rows, unanswered = write_vertex_rows(load_experiment(experiment), output, configuration)
    if unanswered:
        warn(f"{pluralize(unanswered, 'query', 'queries')} left out, without an answer of {configuration}")
    click.echo(f"{output}: {pluralize(rows, 'row')}")
