"""The tables that the benchmark prints, as aligned text or as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agreement import Agreement
from measure import Usage
from tools import RANKBEAM, Source
from turns import Outcome, find

MEGABYTE = 1_000_000
SPELLED = {Source.PARQUET: "Parquet", Source.TEXT: "TREC text"}


@dataclass
class Table:
    """Cells under a title; columns whose name ends in a colon stand to the left, others to the right."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: Sequence[str] = ()

    def text(self) -> str:
        """Render aligned columns."""
        lines = [[name.rstrip(":") for name in self.columns], *self.rows]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        pads = [str.ljust if name.endswith(":") else str.rjust for name in self.columns]
        drawn = [
            "  ".join(pad(*cell) for pad, *cell in zip(pads, line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([self.title, "", drawn[0], "─" * max(map(len, drawn)), *drawn[1:], *self._notes()])

    def markdown(self) -> str:
        """Render a Markdown table."""
        rule = [":--" if name.endswith(":") else "--:" for name in self.columns]
        lines = [[name.rstrip(":") for name in self.columns], rule, *self.rows]
        drawn = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
        return "\n".join([f"### {self.title}", "", *drawn, *self._notes()])

    def _notes(self) -> list[str]:
        return ["", "\n".join(self.notes)] if self.notes else []


COMPARED = ("tool:", "wall s", "lowest–highest", "×", "CPU s", "×", "peak MB", "×", "note:")
NOTES = (
    "×: as a multiple of rankbeam's; above 1, it takes more than rankbeam.",
    "CPU: of all its processes; peak: of its largest process, not the sum.",
)


def comparison(label: str, outcomes: Sequence[Outcome], source: Source) -> Table:
    """Every tool from one source, each figure also as a multiple of rankbeam's."""
    ours = find(outcomes, RANKBEAM, source)
    table = Table(f"{label}: {ours.task.rows:,} rows, from {SPELLED[source]}", COMPARED, notes=NOTES)
    table.rows += [_compared(outcome, ours.typical) for outcome in outcomes if outcome.task.source == source]
    return table


def _compared(outcome: Outcome, ours: Usage) -> Sequence[str]:
    if outcome.failure is not None:
        lines = outcome.failure.splitlines()
        return [outcome.tool.name, *["–"] * 7, ": ".join(dict.fromkeys([lines[0], lines[-1]]))]
    theirs, walls = outcome.typical, [usage.wall_s for usage in outcome.usages]
    pairs = [(theirs.wall_s, ours.wall_s), (theirs.cpu_s, ours.cpu_s), (theirs.peak_bytes, ours.peak_bytes)]
    wall, cpu, peak = (f"{one / other:.2f}" for one, other in pairs)
    spread = f"{min(walls):.2f}–{max(walls):.2f}"
    figures = [f"{theirs.wall_s:.2f}", spread, wall, f"{theirs.cpu_s:.2f}", cpu, _megabytes(theirs), peak]
    return [outcome.tool.name, *figures, ""]


def _megabytes(usage: Usage) -> str:
    return f"{usage.peak_bytes / MEGABYTE:,.0f}"


def agreement(label: str, agreements: Mapping[str, Agreement]) -> Table:
    """Table of the agreement of every tool's values with ours."""
    columns = ("tool:", "queries", "differing", "largest difference", "known:", "unexplained:")
    table = Table(f"{label}: values per query against rankbeam's from Parquet", columns)
    for name, one in agreements.items():
        figures = [f"{one.queries:,}", f"{one.differing:,}", f"{one.largest:.1e}"]
        table.rows.append([name, *figures, "; ".join(one.known) or "–", "; ".join(one.unexplained) or "–"])
    return table


def scaling(outcomes: Iterable[Outcome]) -> Table:
    """Table of rankbeam's costs for more rows, other orders and spellings."""
    columns = ("input:", "from:", "rows", "wall s", "CPU s", "peak MB", "rows/s")
    table = Table("rankbeam alone", columns)
    for one in outcomes:
        usage, rows = one.typical, one.task.rows
        figures = [f"{usage.wall_s:.2f}", f"{usage.cpu_s:.2f}", _megabytes(usage), f"{rows / usage.wall_s:,.0f}"]
        table.rows.append([one.task.label, SPELLED[one.task.source], f"{rows:,}", *figures])
    return table
