"""The command that makes judgements of clicks."""

import itertools
import os

import click

from rankbeam.pipelines.cli import standard_input
from rankbeam.pipelines.cli.group import main
from rankbeam.pipelines.local.messages import messages, warn

_GRADES_HELP = "Lowest share of clicks for the grades 1, 2, …, ascending, such as 0.05,0.15,0.3."
_LEAST_HELP = "Leave out pairs of query and document with fewer impressions."
_POSITION_BIAS = (
    "users click on the first results, relevant or not, so these grades favour the system that was online; before "
    "you compare other systems with it, also use judgements from people or from a judge"
)


@main.command()
@click.argument("clicks_file", metavar="FILE")
@click.option("--output", metavar="FILE", required=True, help="The new file of judgements, in BEIR's format.")
@click.option("--grades", metavar="A,B,…", required=True, help=_GRADES_HELP)
@click.option("--least", type=click.IntRange(1), default=20, show_default=True, metavar="N", help=_LEAST_HELP)
def clicks(clicks_file: str, output: str, grades: str, least: int) -> None:
    """Make judgements from the clicks in FILE: thresholds that you set turn the share of clicks into grades.

    FILE is CSV, Parquet, a BigQuery table, or - for standard input, with the columns query_id, doc_id, clicks and
    impressions. Rows with the same query and document are added up. No file is overwritten.

    \b
    Example:
      rankbeam clicks clicks.csv --grades 0.05,0.15,0.3 --output qrels.tsv
    """
    thresholds = _thresholds(grades)
    with messages(), standard_input.read((clicks_file,)) as (clicks_file,):
        from rankbeam.transforms.clients.formats.clicks import grades_of
        from rankbeam.transforms.clients.storage import files
        from rankbeam.transforms.records.errors import InputError

        if os.path.lexists(output):
            raise InputError("exists already; choose another name", path=output)
        judgements = grades_of(clicks_file, thresholds, least)
        files.write(output, "".join(judgements.lines()).encode())
        click.echo(f"{output}: {judgements.judgements.num_rows:,} judgements")
        for grade, (number, low) in enumerate(zip(judgements.by_grade, (0.0, *thresholds), strict=True)):
            click.echo(f"  grade {grade} (from {low:g} of impressions): {number:,}")
        if judgements.too_few:
            click.echo(f"  left out, with fewer than {least:,} impressions: {judgements.too_few:,}")
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
