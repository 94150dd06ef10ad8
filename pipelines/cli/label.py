"""The commands that make labels and judgements: label, holes and clicks."""

import itertools
import os

import click

from rankbeam.pipelines.cli.group import NamedRun, main, of_run, wide, with_standard_input
from rankbeam.pipelines.local.messages import warn

_METRIC_HELP = "Metric that needs the labels; by default the first judged metric that people can label."
_QUERIES_HELP = "Write tasks for these queries, such as queries marked in the report; they are only used for agreement."
_CONFIGURATIONS_HELP = (
    "Configurations to label, separated by commas; by default the baseline and the best one, or, for rankings, all."
)

_APPLY_HELP = "Read decisions: CSV, JSON lines, a JSON list, or bigquery://PROJECT.DATASET.TABLE."
_LABELS_HELP = "Keep labels in this folder, or in bigquery://PROJECT.DATASET.TABLE; by default in OUT/labels."

_BY_HELP = "Draw from each value of a slice of the run in proportion, and at least 5 queries of each."
_GRADES_HELP = (
    "Human grades that correspond to the judge's grades 0 to 3, such as 0,0,1,2; by default derived from the highest "
    "human grade."
)

_AUDIT_HELP = (
    "Maximum number of documents with grades by both people and judge that audit the judge, drawn evenly over the "
    "judge's grades."
)
_CLICKS_GRADES_HELP = "Lowest share of clicks for the grades 1, 2, …, ascending, such as 0.05,0.15,0.3."
_LEAST_HELP = "Leave out pairs of query and document with fewer impressions."
_POSITION_BIAS = (
    "users click on the first results, relevant or not, so these grades favour the system that was online; before "
    "you compare it with other systems, add judgements from people or from a judge"
)


@main.command()
@click.argument("folder", metavar="OUT")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Draw N queries at random, and write tasks.")
@click.option("--more", type=click.IntRange(min=1), metavar="N", help="Continue the random sample with N more queries.")
@click.option("--queries", metavar="FILE", help=_QUERIES_HELP)
@click.option("--apply", "decisions", metavar="FILE", help=_APPLY_HELP)
@click.option("--labels", "place", metavar="PLACE", help=_LABELS_HELP)
@click.option("-m", "--metric", metavar="METRIC", help=_METRIC_HELP)
@click.option("--configurations", metavar="A,B", default="", help=_CONFIGURATIONS_HELP)
@click.option("--annotator", metavar="NAME", default="", help="Name of the annotator for rows without one.")
@click.option("--by", metavar="SLICE", help=_BY_HELP)
@click.option("--seed", type=int, metavar="N", help="Seed of the random order of queries; 0 by default.")
@of_run
def label(
    named: NamedRun,
    sample: int | None,
    more: int | None,
    queries: str | None,
    decisions: str | None,
    place: str | None,
    metric: str | None,
    configurations: str,
    annotator: str,
    by: str | None,
    seed: int | None,
) -> None:
    """Let people label a random sample of the run in OUT, to learn how far you can trust its judge.

    Tasks are blinded: they show texts, but neither verdicts nor configurations. They are written as CSV, as JSON lines,
    and as a page that works offline. With the labels, `judge: {labels: OUT/labels}` adds agreement, and means by labels
    and judge together, to the next run of the experiment, which does not pay for any call again. For a metric of
    rankings, people grade the first k documents of all configurations; the labels become judgements in
    OUT/label-tasks/qrels.tsv.

    \b
    Examples:
      rankbeam label out/helpdesk --sample 40 --metric Faithfulness
      rankbeam label out/helpdesk --apply tasks-001-ann.jsonl
      rankbeam label out/helpdesk --more 20
      rankbeam label out/helpdesk --sample 40 --metric nDCG@5
      rankbeam label out/helpdesk --queries marked.jsonl
    """
    if sum(option is not None for option in (sample, more, queries, decisions)) != 1:
        raise click.UsageError("say one of --sample N, --more N, --queries FILE and --apply FILE")
    if decisions is None and (annotator or place):
        raise click.UsageError("--annotator and --labels belong to --apply")
    if decisions is not None and metric is not None:
        raise click.UsageError("--metric belongs to --sample, --more and --queries")
    if sample is None and queries is None and (configurations, seed) != ("", None):
        raise click.UsageError("--configurations and --seed belong to --sample and --queries")
    if sample is None and by is not None:
        raise click.UsageError("--by belongs to --sample")
    from rankbeam.pipelines.labels.apply import apply
    from rankbeam.pipelines.labels.draw import LabelSample, draw, pick, split_names
    from rankbeam.pipelines.labels.items import with_histories
    from rankbeam.pipelines.labels.tasks import (
        chosen_queries,
        drawn_before,
        last_drawing,
        task_summary,
        write_tasks,
    )
    from rankbeam.pipelines.run.folders import sole_writer
    from rankbeam.transforms.records.errors import InputError

    if decisions is not None:
        click.echo(apply(named.folder, decisions, annotator, place).as_text())
        return
    run = named.find()
    names = split_names(configurations, [row["name"] for row in run.configurations])
    if more is None:
        drawing = LabelSample.of(run, metric, names, seed or 0, by)
    else:
        drawing = last_drawing(named.folder, metric and LabelSample.of(run, metric, ()).metric)
    with sole_writer(named.folder, "labels", "labels of this folder", "folder"):  # two would draw the same queries
        if queries is not None:
            tasks = pick(run, drawing, chosen_queries(queries))
        else:
            earlier = drawn_before(named.folder, drawing, is_first=sample is not None)
            tasks = draw(run, drawing, sample or more or 1, earlier)
        try:
            tasks = with_histories(run, tasks)
        except InputError as error:
            warn(f"{error}; tasks will not show the earlier turns of conversations")
        paths = write_tasks(named.folder, tasks, drawing)
    click.echo(task_summary(named.folder, tasks, drawing, paths))


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--grades", metavar="A,B,C,D", help=_GRADES_HELP)
@click.option("--audit", type=click.IntRange(min=50), metavar="N", default=200, show_default=True, help=_AUDIT_HELP)
@of_run
@wide
def holes(named: NamedRun, grades: str | None, audit: int, wide: bool) -> None:
    """Fill holes in the judgements of the run in DIR with the grades of its judge, and audit the judge.

    The run needs the metric ContextRelevance@k, for which the judge grades the first k documents of each configuration.
    Documents that people judged keep their grades and audit the judge. The command writes a new file of judgements into
    DIR/holes, with `human` or `llm` in its last column. It makes no call and never changes the dataset's own file.

    \b
    Example:
      rankbeam holes out/helpdesk
    """
    from rankbeam.pipelines.holes import fill
    from rankbeam.pipelines.show.tabular import Screen

    filling = fill(named.find(), grades, audit)
    warn(*filling.warnings)
    click.echo(filling.as_text(Screen.of(wide=wide)))


@main.command()
@click.argument("clicks_file", metavar="FILE")
@click.option("--output", metavar="FILE", required=True, help="The new file of judgements, in BEIR's format.")
@click.option("--grades", metavar="A,B,…", required=True, help=_CLICKS_GRADES_HELP)
@click.option("--least", type=click.IntRange(1), default=20, show_default=True, metavar="N", help=_LEAST_HELP)
def clicks(clicks_file: str, output: str, grades: str, least: int) -> None:
    """Make judgements from the clicks in FILE: thresholds that you set turn the share of clicks into grades.

    FILE is CSV, Parquet, Arrow, a BigQuery table, or - for standard input, with the columns query_id, doc_id, clicks
    and impressions. Rows with the same query and document are added up. No file is overwritten.

    \b
    Example:
      rankbeam clicks clicks.csv --grades 0.05,0.15,0.3 --output qrels.tsv
    """
    thresholds = _thresholds(grades)
    with with_standard_input((clicks_file,)) as (clicks_file,):
        from rankbeam.transforms.clients.formats import sources
        from rankbeam.transforms.clients.formats.clicks import grades_of
        from rankbeam.transforms.clients.storage import files
        from rankbeam.transforms.records.errors import InputError, pluralize

        if os.path.lexists(output):
            raise InputError("exists already; choose another name", path=output)
        judgements = grades_of(clicks_file, thresholds, least)
        files.write(output, "".join(judgements.lines()).encode())
        click.echo(f"{output}: {pluralize(judgements.judgements.num_rows, 'judgement')}")
        for grade, (number, low) in enumerate(zip(judgements.by_grade, (0.0, *thresholds), strict=True)):
            click.echo(f"  grade {grade} (from {low:g} of impressions): {number:,}")
        if judgements.too_few:
            click.echo(f"  left out, with fewer than {least:,} impressions: {judgements.too_few:,}")
        warn(*sources.part_warnings(sources.expand(clicks_file)))
        warn(_POSITION_BIAS)


def _thresholds(text: str) -> list[float]:
    try:
        thresholds = [float(part) for part in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--grades {text!r} is not a list of numbers, such as 0.05,0.15") from None
    ascends = all(low < high for low, high in itertools.pairwise([0.0, *thresholds]))
    if not ascends or not thresholds[-1] <= 1.0:
        raise click.UsageError(f"--grades {text}: shares must ascend, and be above 0 and at most 1")
    return thresholds
