"""Speed of rankbeam, compared with alternative tools and with bare scripts.

    make benchmark                                       everything: about an hour, 8 GB of disk, 3 GB kept
    python tests/benchmarks/run.py --sizes S,L --tools pytrec_eval,polars
    python tests/benchmarks/run.py --quick               does it still work?

It makes the data (`data.py`; kept in --data), runs `rankbeam score` and every other tool as whole processes, in turn,
checks that their values per query are the same (`agreement.py`), and prints medians of time, CPU and memory
(`measure.py` says what they count), each also as a multiple of rankbeam's. Every tool computes the same 12 metrics,
uses as many threads as it likes, and writes values per query and means. One warm-up comes first: files are in the page
cache, bytecode and Numba's caches are there.

| tool | from | what it is |
|---|---|---|
| pytrec_eval, ir_measures, ranx | Parquet, TREC text | the usual Python packages |
| beir | Parquet, TREC text | BEIR's EvaluateRetrieval: means only |
| trec_eval | TREC text | the C program, if there is one on PATH or at --trec-eval |
| polars, duckdb, pyarrow, numba | Parquet | floors: bare scripts without a framework, in peers/ |

The packages come with `pip install -e ".[benchmark]"`, except BEIR: it would bring sentence-transformers, torch and
datasets, gigabytes of which its evaluation needs nothing. `pip install --no-deps beir` is enough; it takes part when
it can be imported. What is not installed is listed as such.

Above 20 million rows (XL) there is only Parquet, and of the others only floors take part, and those that do not hold
all rows more than once: dictionaries of that many rows would need more than 20 GB of memory.

Exit status: 0 done, 1 rankbeam failed or values differ without a known reason, 2 wrong options.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import agreement
import click
import machine
import tables
from measure import CommandFailed
from plan import fitting, grouped_tasks, make_data, other_tasks, planned
from sizes import Size, Variant, parse_size
from tools import RANKBEAM, Source, Tool, tools
from turns import Outcome, Protocol, find, in_turn


def say(message: str) -> None:
    """Tell of progress."""
    click.echo(message, err=True)


@dataclass
class Report:
    """Results to print at the end."""

    shown: list[tables.Table] = field(default_factory=list)
    alone: list[Outcome] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)

    def print(self, markdown: bool) -> None:
        """Print all tables."""
        shown = [*self.shown, tables.scaling(self.alone)]
        about = machine.described()
        click.echo("\n".join([f"- {line}" for line in about] if markdown else about))
        for table in shown:
            click.echo("\n" + (table.markdown() if markdown else table.text()))


def compare(size: Size, outcomes: Sequence[Outcome], report: Report) -> None:
    """Compare the values of all tools with rankbeam's from Parquet."""
    ours = find(outcomes, RANKBEAM, Source.PARQUET)
    values = agreement.read_values(ours.tool, ours.result)
    results = {}
    for one in outcomes:
        if one is not ours and one.failure is None:
            say(f"comparing {one.name}")
            theirs = agreement.read_values(one.tool, one.result)
            name = f"{one.tool.name}, {tables.SPELLED[one.task.source]}"
            results[name] = agreement.compare(values, theirs, one.tool, ours.task.runs[0])
            report.unexplained += [f"{size.name}: {name}: {words}" for words in results[name].unexplained]
    if results:
        report.shown.append(tables.agreement(size.name, results))


def measure_size(size: Size, data: Path, chosen: Sequence[Tool], protocol: Protocol, report: Report) -> None:
    """Measure rankbeam, the first of the tools, on a size, and the others unless the size is for rankbeam alone."""
    tasks = grouped_tasks(size, data)
    with tempfile.TemporaryDirectory(prefix=".work-", dir=data) as work:
        outcomes = in_turn(chosen if size.compared else chosen[:1], tasks, Path(work), protocol)
        if size.compared:
            report.shown += [tables.comparison(size.name, outcomes, task.source) for task in tasks]
        compare(size, outcomes, report)
    report.alone += [one for one in outcomes if one.tool.name == RANKBEAM]


def measure_others(size: Size, data: Path, rankbeam: Tool, protocol: Protocol, report: Report) -> None:
    """Measure rankbeam on a size in other orders and spellings."""
    with tempfile.TemporaryDirectory(prefix=".work-", dir=data) as work:
        outcomes = in_turn([rankbeam], other_tasks(size, data, Path(work)), Path(work), protocol)
    report.alone += outcomes


def parse_sizes(_: click.Context, __: click.Parameter, text: str | None) -> list[Size] | None:
    """Sizes with commas between them."""
    try:
        return text and [parse_size(name) for name in dict.fromkeys(text.split(","))]
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def parse_tools(_: click.Context, __: click.Parameter, text: str | None) -> set[str]:
    """Names of tools with commas between them; rankbeam always takes part."""
    known = tools()
    names = set(text.split(",")) if text else set(known)
    if unknown := sorted(names - set(known)):
        raise click.BadParameter(f"{', '.join(unknown)}: known are {', '.join(known)}")
    return {RANKBEAM, *names}


@click.command()
@click.option("--sizes", callback=parse_sizes, metavar="S,1M,M,L,XL,50x20", help="What to measure (S,1M,L,XL).")
@click.option("--tools", "names", callback=parse_tools, metavar="NAME,NAME", help="Next to rankbeam; all by default.")
@click.option("--repetitions", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--quick", is_flag=True, help="Once, without a warm-up, S only: to see that the benchmark works.")
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=Path("out/benchmarks"), show_default=True
)
@click.option("--trec-eval", default="trec_eval", help="The C program, if it is not on PATH.")
@click.option("--markdown", is_flag=True, help="Print Markdown instead of aligned text.")
def main(
    sizes: list[Size] | None, names: set[str], repetitions: int, quick: bool, data: Path, trec_eval: str, markdown: bool
) -> None:
    """Measure rankbeam next to other tools."""
    protocol = Protocol(1 if quick else repetitions, not quick, say)
    plan = planned(sizes or [parse_size(name) for name in (("S",) if quick else ("S", "1M", "L", "XL"))])
    chosen = [tool for name, tool in tools(trec_eval).items() if name in names]
    report = Report()
    try:
        for size in list(fitting(plan, data, say)):
            make_data(size, plan[size], data, say)
            measure_size(size, data, chosen, protocol, report)
            if Variant.SHUFFLED in plan[size]:
                measure_others(size, data, chosen[0], protocol, report)
    except CommandFailed as failed:
        raise click.ClickException(str(failed)) from failed
    report.print(markdown)
    if report.unexplained:
        raise click.ClickException("values differ without a known reason:\n" + "\n".join(report.unexplained))


if __name__ == "__main__":
    main()
