"""Comparisons: every configuration with the baseline, and the matrix of all pairs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from rankbeam.pipelines.report import svg, words
from rankbeam.pipelines.report.plots import BAR_HEIGHT, BAR_WIDTH, bar_axis
from rankbeam.pipelines.report.study import LEADING, MOST_SHOWN, Study
from rankbeam.pipelines.report.svg import PlotScale, ticks, values_scale
from rankbeam.pipelines.results.leaderboard import doubt
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.scores.comparisons import DIFFERENCES, level_of, queries_for
from rankbeam.transforms.records.scores.rows import Comparison


@dataclass(frozen=True)
class ComparisonSection:
    """A comparison with another run."""

    other: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int
    sentences: Sequence[str]


@dataclass(frozen=True)
class MatrixCell:
    """One cell of the matrix: the row's configuration minus the column's."""

    words: str
    kind: str
    strong: bool = False
    hint: str = ""


GATED = ("difference", "difference_low", "difference_high")  # values of gates on differences
_MARGIN = 18.0
_COLUMNS = ("p_value", "p_adjusted", "q_value", "effect_size", "detectable")


def comparisons(study: Study, metric: str) -> dict[str, Any]:
    order = study.order(metric)
    shown = [config_id for config_id in order if config_id == study.baseline or order.index(config_id) < LEADING]
    matrix = [[_cell(study, metric, one, other) for other in shown] for one in shown]
    rows, axis = with_baseline(study, metric)
    return {
        "metric": metric,
        "rows": rows[:MOST_SHOWN],
        "rows_left_out": max(0, len(rows) - MOST_SHOWN),
        "axis": axis,
        "columns": [name for name in _COLUMNS if any(getattr(pair["row"], name) is not None for pair in rows)],
        "names": [study.titles[config_id] for config_id in shown],
        "matrix": matrix,
        "left_out": len(order) - len(shown),
        "untested": any(cell.kind == "open" for line in matrix for cell in line),
        "differences": _differences(study, metric),
        "tests": sum(pair["row"].p_value is not None for pair in rows),
    }


def with_baseline(study: Study, metric: str) -> tuple[list[dict[str, Any]], Markup | None]:
    """Every configuration compared with the baseline, the best first, and the axis of the differences."""
    compared = ((key, study.overall.get((key, study.baseline, metric))) for key in study.order(metric))
    rows = {key: row for key, row in compared if row is not None}
    scale = _scale(rows.values())
    differences, level = _differences(study, metric), level_of(rows.values(), study.level)
    pairs = [
        _comparison_row(study, key, row, scale, _needed_queries(study, row, differences, level))
        for key, row in rows.items()
    ]
    return pairs, None if scale is None else bar_axis(scale, "bar axis forest", "Differences")


def _differences(study: Study, metric: str) -> tuple[float, ...]:
    """The differences that matter: the limits of the metric's gates on differences, else the default ones."""
    gates = [row for row in study.gates if row["metric"] == metric and row["value"] in GATED]
    limits = {abs(row["at_least"] if row["at_least"] is not None else row["at_most"]) for row in gates}
    return tuple(sorted(limits - {0.0})) or DIFFERENCES


def _needed_queries(study: Study, row: Comparison, differences: tuple[float, ...], level: float) -> str:
    """The queries needed to detect differences, for a comparison without a significant difference."""
    numbers = [queries_for(row, difference, level) for difference in differences]
    if study.is_significant(row) is not False or None in numbers:
        return ""
    return " · ".join(f"{number:,}" for number in numbers)


def _comparison_row(study: Study, one: int, row: Comparison, scale: PlotScale | None, needed: str) -> dict[str, Any]:
    return {
        "name": study.titles[one],
        "row": row,
        "is_significant": study.is_significant(row),
        "difference": words.signed(row.difference),
        "interval": words.interval(row.ci_low, row.ci_high, sign=True) + doubt(row),
        **{name: words.probability(getattr(row, name)) for name in ("p_value", "p_adjusted", "q_value")},
        "effect_size": words.signed(row.effect_size, 2),
        "detectable": words.value(row.detectable if row.shows_spread else None),
        "needed": needed,
        "bar": Markup("") if scale is None else _bar(row, scale, study.titles[one], study.is_significant(row)),
    }


def _cell(study: Study, metric: str, one: int, other: int) -> MatrixCell:
    if one == other:
        return MatrixCell("", "self")
    tested, sign = study.compared(one, other, metric)
    if tested is None or tested.difference is None:
        differences = study.values.differences(study.metrics.index(metric), one, other)
        defined = differences[~np.isnan(differences)]
        return MatrixCell(words.signed(float(defined.mean()) if len(defined) else None, 3), "open")
    gain = sign * tested.gain
    kind = "win" if gain > 0 else "loss" if gain < 0 else "even"
    difference = words.signed(sign * tested.difference, 3)
    return MatrixCell(difference, kind, bool(study.is_significant(tested)), _hint(tested, sign))


def _hint(row: Comparison, sign: int) -> str:
    low, high = row.ci_low, row.ci_high
    if sign < 0 and low is not None and high is not None:
        low, high = -high, -low
    name, p_value = ("p", row.p_value) if row.p_adjusted is None else ("adjusted p", row.p_adjusted)
    wins, losses = (row.wins, row.losses) if sign > 0 else (row.losses, row.wins)
    return (
        f"{words.interval(low, high, sign=True)}; {name} {words.probability(p_value)}; "
        f"{pluralize(wins, 'win')}, {pluralize(row.ties, 'tie')}, {pluralize(losses, 'loss', 'losses')}"
    )


def _scale(rows: Iterable[Comparison]) -> PlotScale | None:
    """A scale for all differences, their intervals, and zero; None without differences."""
    ends = [end for row in rows for end in (row.difference, row.ci_low, row.ci_high) if end is not None]
    return values_scale([0.0, *ends], _MARGIN, BAR_WIDTH - _MARGIN) if ends else None


def _bar(row: Comparison, scale: PlotScale, name: str, is_significant: bool | None) -> Markup:
    if row.difference is None:
        return Markup("")
    middle = BAR_HEIGHT / 2
    kind = ("win" if row.gain > 0 else "loss") if is_significant else "even"
    parts = [svg.line(scale(tick), 0, scale(tick), BAR_HEIGHT, "grid") for tick in ticks(scale)]
    parts.append(svg.line(scale(0.0), 0, scale(0.0), BAR_HEIGHT, "zero"))
    if row.ci_low is not None and row.ci_high is not None:
        parts.append(svg.line(scale(row.ci_low), middle, scale(row.ci_high), middle, f"whisker {kind}"))
    place: dict[str, str | float] = {"x": scale(row.difference) - 4, "y": middle - 4, "width": 8.0, "height": 8.0}
    parts.append(svg.element("rect", place | {"class": f"box {kind}"}))
    interval = words.interval(row.ci_low, row.ci_high, sign=True)
    return svg.picture(
        BAR_WIDTH, BAR_HEIGHT, "bar", f"{name}: {words.signed(row.difference)}", f"interval {interval}", *parts
    )
