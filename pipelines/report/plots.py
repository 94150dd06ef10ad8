"""Plots of a metric along a parameter, as SVG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from markupsafe import Markup

from rankbeam.pipelines.report import svg, words
from rankbeam.pipelines.report.scales import PlotScale, parameter_scale, ticks, values_scale
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.report.sweeps import MOST_LINES, Line, Sweep

WIDTH, HEIGHT = 640.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 18.0, 14.0, 44.0
FEW_LINES = 3
"""Of so many lines the intervals are all drawn."""
_LETTER = 6.5
_OUTLINES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),  # a circle
    ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
    ((0, -5), (5, 4), (-5, 4)),
)

Point = tuple[float, float, float, float]
"""Parameter, mean, and both ends of the interval."""


@dataclass(frozen=True)
class Plot:
    """One metric along one parameter."""

    parameter: str
    picture: Markup
    legend: list[tuple[str, Markup]]
    table: list[tuple[str, str, str, str]]
    left_out: int


def plot(study: Study, sweep: Sweep, metric: str) -> Plot | None:
    """One metric along one parameter; None where no configuration has a value."""
    known = [(line, points) for line in sweep.lines if (points := _points(study, line, metric))]
    if not known:
        return None
    drawn = sorted(known, key=lambda curve: -max(point[1] for point in curve[1]))[:MOST_LINES]
    shown = [point for _, points in drawn for point in points]
    across, up = inner_scales([point[0] for point in shown], [end for point in shown for end in point[1:]])
    parameter, written = study.short(sweep.parameter), partial(_written, study, sweep.parameter)
    parts = [*axes(across, up, [point[0] for _, points in drawn for point in points], parameter, written)]
    parts += bands(across, up, [points for _, points in drawn])
    parts += [
        curve(across, up, points, [f"{line.label}, {_hint(written, *point)}" for point in points], place)
        for place, (line, points) in enumerate(drawn)
    ]
    description = "; ".join(f"{line.label}: {_story(written, points)}" for line, points in drawn)
    return Plot(
        parameter=parameter,
        picture=svg.picture(WIDTH, HEIGHT, "plot", f"{metric} along {parameter}", description, *parts),
        legend=[(line.label, sample(place)) for place, (line, _) in enumerate(drawn)],
        table=[
            (line.label, written(x), words.value(mean), words.interval(low, high))
            for line, points in known
            for x, mean, low, high in points
        ],
        left_out=len(known) - len(drawn),
    )


def _points(study: Study, line: Line, metric: str) -> list[Point]:
    rows = [(x, study.mean(configuration, metric)) for x, configuration in line.points]
    return [(x, row.mean, *(row.interval or (row.mean, row.mean))) for x, row in rows if row.mean is not None]


def inner_scales(across: Sequence[float], up: Sequence[float]) -> tuple[PlotScale, PlotScale]:
    """The scales of both axes of a plot."""
    return parameter_scale(across, _LEFT + 14, WIDTH - _RIGHT - 14), values_scale(up, HEIGHT - _BOTTOM, _TOP)


def _written(study: Study, parameter: str, value: float) -> str:
    return study.written(parameter, int(value) if value.is_integer() else value)


def axes(
    across: PlotScale,
    up: PlotScale,
    values: list[float],
    parameter: str,
    written: Callable[[float], str] = words.plain_number,
) -> list[Markup]:
    """Grid, axes and their labels."""
    parts = []
    for tick in ticks(up):
        parts.append(svg.line(_LEFT, up(tick), WIDTH - _RIGHT, up(tick), "grid"))
        parts.append(svg.text(_LEFT - 8, up(tick) + 4, words.plain_number(tick).replace("-", "−"), "tick", "end"))
    parts.append(svg.line(_LEFT, HEIGHT - _BOTTOM, WIDTH - _RIGHT, HEIGHT - _BOTTOM, "base"))
    free = -1e9
    for value in sorted(set(values)):
        label = written(value)
        half = len(label) * _LETTER / 2 + 4
        parts.append(svg.line(across(value), HEIGHT - _BOTTOM, across(value), HEIGHT - _BOTTOM + 5, "base"))
        if across(value) - half >= free:
            parts.append(svg.text(across(value), HEIGHT - _BOTTOM + 18, label, "tick"))
            free = across(value) + half
    scaled = f"{parameter} (logarithmic)" if across.logarithmic else parameter
    parts.append(svg.text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 6, scaled, "label"))
    return parts


def bands(across: PlotScale, up: PlotScale, lines: Sequence[list[Point]]) -> list[Markup]:
    """The intervals of each line as an area; of the first line alone where they would cover each other."""
    shown = lines if len(lines) <= FEW_LINES else lines[:1]
    return [_band(across, up, points, place) for place, points in enumerate(shown)]


def _band(across: PlotScale, up: PlotScale, points: list[Point], place: int) -> Markup:
    edge = [(x, high) for x, _, _, high in points] + [(x, low) for x, _, low, _ in reversed(points)]
    return svg.element("polygon", {"points": _path(across, up, edge), "class": f"band series-{place}"})


def curve(across: PlotScale, up: PlotScale, points: list[Point], hints: list[str], place: int) -> Markup:
    """A line, and a mark with a hint for each of its points."""
    path = _path(across, up, [(x, mean) for x, mean, _, _ in points])
    marks = [_mark(across(x), up(mean), place, hint) for (x, mean, _, _), hint in zip(points, hints, strict=True)]
    return svg.element("g", {"class": f"series-{place}"}, svg.element("polyline", {"points": path}), *marks)


def _hint(written: Callable[[float], str], x: float, mean: float, low: float, high: float) -> str:
    return f"{written(x)}: {words.value(mean)} ({words.interval(low, high)})"


def _mark(x: float, y: float, place: int, hint: str = "") -> Markup:
    """A point, in a shape of its line's own: colour is not all that tells lines apart."""
    title = [svg.element("title", {}, hint)] if hint else []
    outline = _OUTLINES[place % len(_OUTLINES)]
    if not outline:
        return svg.element("circle", {"cx": x, "cy": y, "r": 4.5, "class": "mark"}, *title)
    corners = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in outline)
    return svg.element("polygon", {"points": corners, "class": "mark"}, *title)


def sample(place: int) -> Markup:
    """Appearance of a line, for a legend."""
    parts = [svg.element("polyline", {"points": "1,7 33,7"}), _mark(17, 7, place)]
    return svg.element(
        "svg",
        {"viewBox": "0 0 34 14", "class": "sample", "aria-hidden": "true"},
        svg.element("g", {"class": f"series-{place}"}, *parts),
    )


def _path(across: PlotScale, up: PlotScale, points: list[tuple[float, float]]) -> str:
    return " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)


def _story(written: Callable[[float], str], points: list[Point]) -> str:
    return ", ".join(f"{words.value(mean)} at {written(x)}" for x, mean, _, _ in points)
