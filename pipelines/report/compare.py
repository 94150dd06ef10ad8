"""Comparisons: every configuration with the baseline, and the matrix of all pairs."""

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from rankbeam.pipelines.report import forest, words
from rankbeam.pipelines.report.leaderboard import doubt
from rankbeam.pipelines.report.scales import PlotScale
from rankbeam.pipelines.report.study import LEADING, Study
from rankbeam.transforms.records.scores.comparisons import DIFFERENCES, level_of, queries_for
from rankbeam.transforms.records.scores.rows import Comparison


@dataclass(frozen=True)
class ConfigurationPair:
    """One configuration beside another."""

    name: str
    baseline: str
    row: Comparison
    is_significant: bool | None  # None if that was not tested
    difference: str
    interval: str
    p_value: str
    p_adjusted: str
    q_value: str
    effect_size: str
    detectable: str
    needed: str  # queries for each of `differences`; empty where the comparison is significant
    bar: Markup


@dataclass(frozen=True)
class MatrixCell:
    """One cell of the matrix: the row's configuration minus the column's."""

    words: str
    kind: str
    strong: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Comparisons:
    """The comparisons of one metric."""

    metric: str
    rows: list[ConfigurationPair]
    columns: list[str]
    axis: Markup | None
    names: list[str]
    matrix: list[list[MatrixCell]]
    left_out: int
    untested: bool
    differences: tuple[float, ...]
    tests: int


GATED = ("difference", "difference_low", "difference_high")
"""The values of gates that are about differences."""
_COLUMNS = ("p_value", "p_adjusted", "q_value", "effect_size", "detectable")


def comparisons(study: Study, metric: str) -> Comparisons:
    """The comparisons of one metric over all queries."""
    order = study.order(metric)
    shown = [config_id for config_id in order if config_id == study.baseline or order.index(config_id) < LEADING]
    matrix = [[_cell(study, metric, one, other) for other in shown] for one in shown]
    rows, axis = with_baseline(study, metric)
    return Comparisons(
        metric=metric,
        rows=rows,
        axis=axis,
        columns=[name for name in _COLUMNS if any(getattr(pair.row, name) is not None for pair in rows)],
        names=[study.titles[config_id] for config_id in shown],
        matrix=matrix,
        left_out=len(order) - len(shown),
        untested=any(cell.kind == "open" for line in matrix for cell in line),
        differences=_differences(study, metric),
        tests=sum(pair.row.p_value is not None for pair in rows),
    )


def with_baseline(study: Study, metric: str) -> tuple[list[ConfigurationPair], Markup | None]:
    """Every configuration beside the baseline, the best first, and the axis of their differences."""
    compared = ((one, study.overall.get((one, study.baseline, metric))) for one in study.order(metric))
    rows = {one: row for one, row in compared if row is not None}
    scale = forest.scale_of(rows.values())
    differences, level = _differences(study, metric), level_of(rows.values(), study.level)
    pairs = [_compared(study, one, row, scale, _needed(study, row, differences, level)) for one, row in rows.items()]
    return pairs, None if scale is None else forest.axis(scale)


def _differences(study: Study, metric: str) -> tuple[float, ...]:
    """The differences that matter: the limits of the metric's gates on differences, else the usual ones."""
    gates = [row for row in study.gates if row["metric"] == metric and row["value"] in GATED]
    limits = {abs(row["at_least"] if row["at_least"] is not None else row["at_most"]) for row in gates}
    return tuple(sorted(limits - {0.0})) or DIFFERENCES


def _needed(study: Study, row: Comparison, differences: tuple[float, ...], level: float) -> str:
    """The queries that differences need, for a comparison without a significant difference."""
    numbers = [queries_for(row, difference, level) for difference in differences]
    if study.is_significant(row) is not False or None in numbers:
        return ""
    return " · ".join(f"{number:,}" for number in numbers)


def _compared(study: Study, one: int, row: Comparison, scale: PlotScale | None, needed: str) -> ConfigurationPair:
    return ConfigurationPair(
        name=study.titles[one],
        baseline=study.names[study.baseline],
        row=row,
        is_significant=study.is_significant(row),
        difference=words.signed(row.difference),
        interval=words.interval(row.ci_low, row.ci_high, sign=True) + doubt(row),
        **{name: words.probability(getattr(row, name)) for name in ("p_value", "p_adjusted", "q_value")},
        effect_size=words.signed(row.effect_size, 2),
        detectable=words.value(row.detectable),
        needed=needed,
        bar=Markup("") if scale is None else forest.bar(row, scale, study.titles[one], study.is_significant(row)),
    )


def _cell(study: Study, metric: str, one: int, other: int) -> MatrixCell:
    if one == other:
        return MatrixCell("", "self")
    tested, sign = study.overall.get((one, other, metric)), 1
    if tested is None:
        tested, sign = study.overall.get((other, one, metric)), -1
    if tested is None or tested.difference is None:
        differences = study.values.differences(study.metrics.index(metric), one, other)
        defined = differences[~np.isnan(differences)]
        return MatrixCell(words.signed(float(defined.mean()) if len(defined) else None, 3), "open")
    difference = sign * tested.difference
    kind = "win" if difference > 0 else "loss" if difference < 0 else "even"
    strong = bool(study.is_significant(tested))
    return MatrixCell(words.signed(difference, 3), kind, strong, _hint(tested, sign))


def _hint(row: Comparison, sign: int) -> str:
    low, high = row.ci_low, row.ci_high
    if sign < 0 and low is not None and high is not None:
        low, high = -high, -low
    name, p_value = ("p", row.p_value) if row.p_adjusted is None else ("adjusted p", row.p_adjusted)
    wins, losses = (row.wins, row.losses) if sign > 0 else (row.losses, row.wins)
    return (
        f"{words.interval(low, high, sign=True)}; {name} {words.probability(p_value)}; "
        f"{wins:,} wins, {row.ties:,} ties, {losses:,} losses"
    )
