"""The tables that people see in a terminal."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankbeam.pipelines.results.equals import distinct
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.blocks import GAP, blocks, folded, terminal_width
from rankbeam.pipelines.show.parts import (
    CUT_SHORT,
    Slices,
    best_by,
    best_mean,
    count_columns,
    counts,
    left_out,
    mark,
    offline_notes,
    overall,
    slices_by_attribute,
)
from rankbeam.pipelines.show.tabular import printable
from rankbeam.transforms.records.scores.rows import ConfigurationMetric
from rankbeam.transforms.records.slices import ALL


def print_table(results: Results) -> None:
    """Print the leaderboard, and the first metric by slice."""
    # A table that is cut to the width of a terminal is of no use; in a log or a pipe it is also not split into blocks.
    console = Console(width=10_000, highlight=False)
    metrics = results.metrics
    rows = distinct(results)
    table = _Sheet(["configuration", *metrics, *count_columns(results)])
    best = {metric: best_mean(results, ALL, metric) for metric in metrics}
    for row in rows:
        cells = [_cell(results, results.means[row["config_id"], ALL, metric], best[metric]) for metric in metrics]
        table.add_row(row["name"], *cells, *counts(results, row["config_id"]))
    table.print(console)
    if offline := offline_notes(results):
        console.print("\n" + "\n".join(offline), markup=False)
    if results.cut_short:
        console.print(f"\n{CUT_SHORT}")
    if sentences := best_by(results, metrics[0]):
        console.print(f"\n{printable(sentences)}", markup=False)
    _print_left_out(results, console, rows)
    _print_failures(results, console, rows)
    _print_ties(results, console, rows)
    for part in slices_by_attribute(results):
        _print_slices(results, console, part, metrics[0], rows)


def _print_left_out(results: Results, console: Console, rows: list[dict[str, Any]]) -> None:
    """How many queries every mean is without, where that differs by metric."""
    if not (words := left_out(results)):
        return
    table = _Sheet(["queries left out", *results.metrics])
    for row in rows:
        table.add_row(row["name"], *words[row["config_id"]])
    console.print()
    table.print(console)


def _print_failures(results: Results, console: Console, rows: list[dict[str, Any]]) -> None:
    """What every mean could be if the failed queries had been answered."""
    failed = [row for row in rows if any(mean.failed for mean in overall(results, row["config_id"]))]
    if not failed:
        return
    table = _Sheet(["had failed queries been answered", *results.metrics])
    for row in failed:
        table.add_row(row["name"], *map(_bounds, overall(results, row["config_id"])))
    console.print()
    table.print(console)


def _bounds(mean: ConfigurationMetric) -> str:
    if mean.lowest is None:
        return mean.absent
    return f"{mean.lowest:.4f} or more" if mean.highest is None else f"{mean.lowest:.4f} to {mean.highest:.4f}"


def _print_ties(results: Results, console: Console, rows: list[dict[str, Any]]) -> None:
    """How far the order of tied documents moves every mean, where that was asked for."""
    known = [row for row in rows if any(mean.tie_lowest is not None for mean in overall(results, row["config_id"]))]
    if not known:
        return
    table = _Sheet(["if ties fell otherwise", *results.metrics])
    for row in known:
        table.add_row(row["name"], *map(_tie_bounds, overall(results, row["config_id"])))
    console.print()
    table.print(console)


def _tie_bounds(mean: ConfigurationMetric) -> str:
    low, high = mean.tie_lowest, mean.tie_highest
    return "no matter" if low is None or low == high else f"{low:.4f} to {high:.4f}"


def _print_slices(results: Results, console: Console, part: Slices, metric: str, rows: list[dict[str, Any]]) -> None:
    if part.too_many:
        console.print(f"\n{part.too_many}")
        return
    table = _Sheet([f"{metric} by {part.attribute}", *part.headings(results)])
    best = {each: best_mean(results, each, metric) for each in part.names}
    for row in rows:
        cells = [_cell(results, results.means[row["config_id"], each, metric], best[each]) for each in part.names]
        table.add_row(row["name"], *cells)
    console.print()
    table.print(console)


class _Sheet:
    """A table that is printed whole or, in a terminal that it is too wide for, in blocks of columns.

    Args:
        columns: the headings; the first column stands to the left, and in every block.
    """

    def __init__(self, columns: list[str]) -> None:
        self._columns = [printable(column) for column in columns]
        self._rows: list[list[Text]] = []

    def add_row(self, name: str, *cells: Text | str) -> None:
        """Add a row: a name, and the other cells."""
        self._rows.append([Text(printable(name)), *(Text(cell) if isinstance(cell, str) else cell for cell in cells)])

    def print(self, console: Console) -> None:
        """Print it."""
        room = terminal_width()
        if room is None or self._width(self._columns) <= room:
            console.print(self._table(self._columns, range(len(self._columns))))
            return
        headings = [self._columns[0], *map(folded, self._columns[1:])]
        for number, places in enumerate(blocks(self._widths(headings), room)):
            if number:
                console.print()
            console.print(self._table(headings, places))

    def _width(self, headings: Sequence[str]) -> int:
        widths = self._widths(headings)
        return sum(widths) + GAP * (len(widths) - 1)

    def _widths(self, headings: Sequence[str]) -> list[int]:
        of_headings = [max(map(cell_len, heading.split("\n"))) for heading in headings]
        return [max([width, *(row[place].cell_len for row in self._rows)]) for place, width in enumerate(of_headings)]

    def _table(self, headings: Sequence[str], places: Iterable[int]) -> Table:
        chosen = list(places)
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for place in chosen:
            table.add_column(
                Text(headings[place]), justify="right" if place else "left", no_wrap=True, vertical="bottom"
            )
        for row in self._rows:
            table.add_row(*(row[place] for place in chosen))
        return table


def _cell(results: Results, row: ConfigurationMetric, best: float | None) -> Text:
    if row.mean is None:
        return Text(row.absent)
    # Near an end of the range one side of an interval is the longer; a plain ± has to hold both.
    reach = "" if row.reach is None else f" ±{row.reach:.3f}"
    text = f"{row.mean:.4f}{mark(results, row)}{reach}"
    return Text(text, style="bold" if row.mean == best else "")
