"""The tables that people see in a terminal."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankbeam.pipelines.results.equals import distinct
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.parts import (
    CUT_SHORT,
    Slices,
    best_mean,
    count_columns,
    counts,
    mark,
    overall,
    slices_by_attribute,
    told_from_the_best,
)
from rankbeam.pipelines.show.tabular import printable
from rankbeam.transforms.records.scores.rows import ConfigurationMetric
from rankbeam.transforms.records.slices import ALL


def print_table(results: Results) -> None:
    """Print the leaderboard, and the first metric by slice."""
    # A table that is cut or folded to the width of a terminal is of no use, least of all in a log or a pipe.
    console = Console(width=10_000, highlight=False)
    metrics = results.metrics
    rows = distinct(results)
    table = _new_table(["configuration", *metrics, *count_columns(results)])
    best = {metric: best_mean(results, ALL, metric) for metric in metrics}
    for row in rows:
        cells = [_cell(results, results.means[row["config_id"], ALL, metric], best[metric]) for metric in metrics]
        table.add_row(_plain(row["name"]), *cells, *counts(results, row["config_id"]))
    console.print(table)
    if results.cut_short:
        console.print(f"\n{CUT_SHORT}")
    if told := told_from_the_best(results, metrics[0]):
        console.print(f"\n{printable(told)}", markup=False)
    _print_failures(results, console, rows)
    _print_ties(results, console, rows)
    for part in slices_by_attribute(results):
        _print_slices(results, console, part, metrics[0], rows)


def _print_failures(results: Results, console: Console, rows: list[dict[str, Any]]) -> None:
    """What every mean could be if the failed queries had been answered."""
    failed = [row for row in rows if any(mean.failed for mean in overall(results, row["config_id"]))]
    if not failed:
        return
    table = _new_table(["had failed queries been answered", *results.metrics])
    for row in failed:
        bounds = [(mean.lowest, mean.highest) for mean in overall(results, row["config_id"])]
        cells = [f"{low:.4f} or more" if high is None else f"{low:.4f} to {high:.4f}" for low, high in bounds]
        table.add_row(_plain(row["name"]), *cells)
    console.print()
    console.print(table)


def _print_ties(results: Results, console: Console, rows: list[dict[str, Any]]) -> None:
    """How far the order of tied documents moves every mean, where that was asked for."""
    known = [row for row in rows if any(mean.tie_lowest is not None for mean in overall(results, row["config_id"]))]
    if not known:
        return
    table = _new_table(["if ties fell otherwise", *results.metrics])
    for row in known:
        bounds = [(mean.tie_lowest, mean.tie_highest) for mean in overall(results, row["config_id"])]
        cells = ["no matter" if low == high else f"{low:.4f} to {high:.4f}" for low, high in bounds]
        table.add_row(_plain(row["name"]), *cells)
    console.print()
    console.print(table)


def _print_slices(results: Results, console: Console, part: Slices, metric: str, rows: list[dict[str, Any]]) -> None:
    if part.too_many:
        console.print(f"\n{part.too_many}")
        return
    table = _new_table([f"{metric} by {part.attribute}", *part.headings(results)])
    best = {each: best_mean(results, each, metric) for each in part.names}
    for row in rows:
        cells = [_cell(results, results.means[row["config_id"], each, metric], best[each]) for each in part.names]
        table.add_row(_plain(row["name"]), *cells)
    console.print()
    console.print(table)


def _new_table(columns: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(_plain(column), justify="left" if position == 0 else "right", no_wrap=True)
    return table


def _plain(name: str) -> Text:
    return Text(printable(name))


def _cell(results: Results, row: ConfigurationMetric, best: float | None) -> Text:
    if row.mean is None:
        return Text(row.absent)
    # Near an end of the range one side of an interval is the longer; a plain ± has to hold both.
    reach = "" if row.reach is None else f" ±{row.reach:.3f}"
    text = f"{row.mean:.4f}{mark(results, row)}{reach}"
    return Text(text, style="bold" if row.mean == best else "")
