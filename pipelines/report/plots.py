"""Plots of a metric along a parameter, as SVG."""

from dataclasses import dataclass

from markupsafe import Markup

from rankbeam.pipelines.report import svg, words
from rankbeam.pipelines.report.scales import Scale, parameter_scale, ticks, values_scale
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.report.sweeps import MOST_LINES, Line, Sweep

_WIDTH, _HEIGHT = 640.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 18.0, 14.0, 44.0
_FEW_LINES = 3
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
    """One metric along one parameter.

    Attributes:
        parameter: its name.
        picture: the plot.
        legend: per line its label, and a sample of how it is drawn.
        table: the same as rows of line, value, mean and interval.
        left_out: how many lines are not drawn.
    """

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
    drawn = sorted(known, key=lambda each: -max(point[1] for point in each[1]))[:MOST_LINES]
    across = parameter_scale([point[0] for _, points in drawn for point in points], _LEFT + 14, _WIDTH - _RIGHT - 14)
    up = values_scale([end for _, points in drawn for point in points for end in point[1:]], _HEIGHT - _BOTTOM, _TOP)
    parameter = sweep.parameter.removeprefix("retriever.")
    parts = [*_axes(across, up, [point[0] for _, points in drawn for point in points], parameter)]
    parts += [_band(across, up, points, place) for place, (_, points) in enumerate(drawn)]
    parts += [_curve(across, up, line, points, place) for place, (line, points) in enumerate(drawn)]
    description = "; ".join(f"{line.label}: {_story(points)}" for line, points in drawn)
    kind = "plot many" if len(drawn) > _FEW_LINES else "plot"
    return Plot(
        parameter=parameter,
        picture=svg.picture(_WIDTH, _HEIGHT, kind, f"{metric} along {parameter}", description, *parts),
        legend=[(line.label, _sample(place)) for place, (line, _) in enumerate(drawn)],
        table=[
            (line.label, words.plain_number(x), words.value(mean), words.interval(low, high))
            for line, points in known
            for x, mean, low, high in points
        ],
        left_out=len(known) - len(drawn),
    )


def _points(study: Study, line: Line, metric: str) -> list[Point]:
    rows = [(x, study.mean(configuration, metric)) for x, configuration in line.points]
    return [(x, row.mean, *(row.interval or (row.mean, row.mean))) for x, row in rows if row.mean is not None]


def _axes(across: Scale, up: Scale, values: list[float], parameter: str) -> list[Markup]:
    parts = []
    for each in ticks(up):
        parts.append(svg.line(_LEFT, up(each), _WIDTH - _RIGHT, up(each), "grid"))
        parts.append(svg.text(_LEFT - 8, up(each) + 4, words.plain_number(each).replace("-", "−"), "tick", "end"))
    parts.append(svg.line(_LEFT, _HEIGHT - _BOTTOM, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM, "base"))
    free = -1e9
    for each in sorted(set(values)):
        written = words.plain_number(each)
        half = len(written) * _LETTER / 2 + 4
        parts.append(svg.line(across(each), _HEIGHT - _BOTTOM, across(each), _HEIGHT - _BOTTOM + 5, "base"))
        if across(each) - half >= free:
            parts.append(svg.text(across(each), _HEIGHT - _BOTTOM + 18, written, "tick"))
            free = across(each) + half
    scaled = f"{parameter} (logarithmic)" if across.logarithmic else parameter
    parts.append(svg.text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, scaled, "label"))
    return parts


def _band(across: Scale, up: Scale, points: list[Point], place: int) -> Markup:
    edge = [(x, high) for x, _, _, high in points] + [(x, low) for x, _, low, _ in reversed(points)]
    return svg.element("polygon", {"points": _path(across, up, edge), "class": f"band series-{place}"})


def _curve(across: Scale, up: Scale, line: Line, points: list[Point], place: int) -> Markup:
    path = _path(across, up, [(x, mean) for x, mean, _, _ in points])
    marks = [
        _mark(across(x), up(mean), place, f"{line.label}, {_hint(x, mean, low, high)}") for x, mean, low, high in points
    ]
    return svg.element("g", {"class": f"series-{place}"}, svg.element("polyline", {"points": path}), *marks)


def _hint(x: float, mean: float, low: float, high: float) -> str:
    return f"{words.plain_number(x)}: {words.value(mean)} ({words.interval(low, high)})"


def _mark(x: float, y: float, place: int, hint: str = "") -> Markup:
    """A point, in a shape of its line's own: colour is not all that tells lines apart."""
    title = [svg.element("title", {}, hint)] if hint else []
    outline = _OUTLINES[place % len(_OUTLINES)]
    if not outline:
        return svg.element("circle", {"cx": x, "cy": y, "r": 4.5, "class": "mark"}, *title)
    corners = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in outline)
    return svg.element("polygon", {"points": corners, "class": "mark"}, *title)


def _sample(place: int) -> Markup:
    parts = [svg.element("polyline", {"points": "1,7 33,7"}), _mark(17, 7, place)]
    return svg.element(
        "svg",
        {"viewBox": "0 0 34 14", "class": "sample", "aria-hidden": "true"},
        svg.element("g", {"class": f"series-{place}"}, *parts),
    )


def _path(across: Scale, up: Scale, points: list[tuple[float, float]]) -> str:
    return " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)


def _story(points: list[Point]) -> str:
    return ", ".join(f"{words.value(mean)} at {words.plain_number(x)}" for x, mean, _, _ in points)
