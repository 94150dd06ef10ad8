"""A plot of lines through points, as SVG."""

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from rankbeam.pipelines.report import svg, words
from rankbeam.pipelines.report.plots import HEIGHT, WIDTH, axes, bands, curve, inner_scales, sample
from rankbeam.pipelines.report.sweeps import MOST_LINES

Point = tuple[float, float, float, float, str]
"""Across, up, both ends of an interval, and what the point is of."""


@dataclass(frozen=True)
class Curve:
    """One line."""

    label: str
    points: list[Point]


@dataclass(frozen=True)
class LinePlot:
    """A plot of several lines."""

    title: str
    across: str
    picture: Markup
    legend: list[tuple[str, Markup]]
    table: list[tuple[str, str, str, str]]
    left_out: int


def line_plot(title: str, across: str, curves: Iterable[Curve]) -> LinePlot | None:
    """A plot of the first curves; None where no curve has a point."""
    known = [each for each in curves if each.points]
    if not known:
        return None
    drawn = known[:MOST_LINES]
    points = [point for each in drawn for point in each.points]
    scales = inner_scales([point[0] for point in points], [end for point in points for end in point[1:4]])
    parts = [*axes(*scales, [point[0] for point in points], across)]
    parts += bands(*scales, [[point[:4] for point in each.points] for each in drawn])
    parts += [
        curve(*scales, [point[:4] for point in each.points], [_hint(each, point) for point in each.points], place)
        for place, each in enumerate(drawn)
    ]
    summary = "; ".join(
        f"{each.label}: {', '.join(f'{words.value(p[1])} at {p[4]}' for p in each.points)}" for each in drawn
    )
    return LinePlot(
        title,
        across,
        svg.picture(WIDTH, HEIGHT, "plot", title, summary, *parts),
        [(each.label, sample(place)) for place, each in enumerate(drawn)],
        [
            (each.label, name, words.value(up), words.interval(low, high))
            for each in known
            for _, up, low, high, name in each.points
        ],
        len(known) - len(drawn),
    )


def _hint(line: Curve, point: Point) -> str:
    return f"{line.label}, {point[4]}: {words.value(point[1])} ({words.interval(point[2], point[3])})"
