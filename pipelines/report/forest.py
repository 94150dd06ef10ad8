"""A forest plot, row by row: differences from the baseline, each with its interval, beside a line at zero."""

from collections.abc import Iterable

from markupsafe import Markup

from rankbeam.pipelines.report import svg, words
from rankbeam.pipelines.report.scales import PlotScale, ticks, values_scale
from rankbeam.transforms.records.scores.rows import Comparison

_WIDTH, _HEIGHT, _MARGIN = 260.0, 22.0, 18.0


def scale_of(rows: Iterable[Comparison]) -> PlotScale | None:
    """A scale that holds all differences, their intervals, and zero; None where there is no difference."""
    ends = [end for row in rows for end in (row.difference, row.ci_low, row.ci_high) if end is not None]
    return values_scale([0.0, *ends], _MARGIN, _WIDTH - _MARGIN) if ends else None


def bar(row: Comparison, scale: PlotScale, name: str, is_significant: bool | None) -> Markup:
    """One row of the plot."""
    if row.difference is None:
        return Markup("")
    middle = _HEIGHT / 2
    kind = ("win" if row.difference > 0 else "loss") if is_significant else "even"
    parts = [svg.line(scale(tick), 0, scale(tick), _HEIGHT, "grid") for tick in ticks(scale)]
    parts.append(svg.line(scale(0.0), 0, scale(0.0), _HEIGHT, "zero"))
    if row.ci_low is not None and row.ci_high is not None:
        parts.append(svg.line(scale(row.ci_low), middle, scale(row.ci_high), middle, f"whisker {kind}"))
    place: dict[str, str | float] = {"x": scale(row.difference) - 4, "y": middle - 4, "width": 8.0, "height": 8.0}
    parts.append(svg.element("rect", place | {"class": f"box {kind}"}))
    reach = words.interval(row.ci_low, row.ci_high, sign=True)
    return svg.picture(_WIDTH, _HEIGHT, "bar", f"{name}: {words.signed(row.difference)}", f"interval {reach}", *parts)


def axis(scale: PlotScale) -> Markup:
    """The axis above the rows."""
    marks = ticks(scale)
    written = [words.plain_number(mark).replace("-", "−") for mark in marks]
    labels = [svg.text(scale(value), 11, word, "tick") for value, word in zip(marks, written, strict=True)]
    return svg.picture(_WIDTH, 14, "bar axis forest", f"Differences from {written[0]} to {written[-1]}", "", *labels)
