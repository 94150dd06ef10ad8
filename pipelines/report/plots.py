"""Plots of lines through points, as SVG."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rankbeam.pipelines.report import svg, words
from rankbeam.pipelines.report.svg import PlotScale, parameter_scale, ticks, values_scale

WIDTH, HEIGHT = 640.0, 300.0
BAR_WIDTH, BAR_HEIGHT = 260.0, 22.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 18.0, 14.0, 44.0
MOST_LINES, FEW_LINES = 8, 3  # maximum lines in a plot, and maximum lines for which all intervals are drawn
_LETTER = 6.5
_OUTLINES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),  # a circle
    ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
    ((0, -5), (5, 4), (-5, 4)),
)

Point = tuple[float, float, float, float, str]  # across, up, both ends of an interval, and a label


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


def line_plot(
    title: str,
    across: str,
    curves: Iterable[Curve],
    written: Callable[[float], str] = words.plain_number,
) -> LinePlot | None:
    """A plot of the first curves; None if no curve has a point.

    `written` formats a value on the axis.
    """
    drawable = [line for line in curves if line.points]
    if not drawable:
        return None
    drawn = drawable[:MOST_LINES]
    points = [point for line in drawn for point in line.points]
    scales = inner_scales([point[0] for point in points], [end for point in points for end in point[1:4]])
    parts = [*axes(*scales, [point[0] for point in points], across, written), *_bands(*scales, drawn)]
    parts += [_curve(*scales, line, place) for place, line in enumerate(drawn)]
    summary = "; ".join(
        f"{line.label}: {', '.join(f'{words.value(p[1])} at {p[4]}' for p in line.points)}" for line in drawn
    )
    return LinePlot(
        title,
        across,
        svg.picture(WIDTH, HEIGHT, "plot", title, summary, *parts),
        [(line.label, _sample(place)) for place, line in enumerate(drawn)],
        [
            (line.label, name, words.value(up), words.interval(low, high))
            for line in drawable
            for _, up, low, high, name in line.points
        ],
        len(drawable) - len(drawn),
    )


def inner_scales(across: Sequence[float], up: Sequence[float]) -> tuple[PlotScale, PlotScale]:
    return parameter_scale(across, _LEFT + 14, WIDTH - _RIGHT - 14), values_scale(up, HEIGHT - _BOTTOM, _TOP)


def axes(
    across: PlotScale,
    up: PlotScale,
    values: list[float],
    parameter: str,
    written: Callable[[float], str] = words.plain_number,
) -> list[Markup]:
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


def bar_axis(scale: PlotScale, kind: str, title: str) -> Markup:
    """The axis above bars in a table."""
    marks = ticks(scale)
    written = [words.plain_number(mark).replace("-", "−") for mark in marks]
    labels = [svg.text(scale(mark), 11, word, "tick") for mark, word in zip(marks, written, strict=True)]
    return svg.picture(BAR_WIDTH, 14, kind, f"{title} from {written[0]} to {written[-1]}", "", *labels)


def _bands(across: PlotScale, up: PlotScale, lines: Sequence[Curve]) -> list[Markup]:
    """Each line's intervals as an area; only the first line's if areas would cover each other."""
    shown = lines if len(lines) <= FEW_LINES else lines[:1]
    return [_band(across, up, line.points, place) for place, line in enumerate(shown)]


def _band(across: PlotScale, up: PlotScale, points: list[Point], place: int) -> Markup:
    edge = [(x, high) for x, _, _, high, _ in points] + [(x, low) for x, _, low, *_ in reversed(points)]
    return svg.element("polygon", {"points": _path(across, up, edge), "class": f"band series-{place}"})


def _curve(across: PlotScale, up: PlotScale, line: Curve, place: int) -> Markup:
    path = _path(across, up, [(x, mean) for x, mean, *_ in line.points])
    marks = [
        _mark(across(x), up(mean), place, f"{line.label}, {name}: {words.value(mean)} ({words.interval(low, high)})")
        for x, mean, low, high, name in line.points
    ]
    return svg.element("g", {"class": f"series-{place}"}, svg.element("polyline", {"points": path}), *marks)


def _mark(x: float, y: float, place: int, hint: str = "") -> Markup:
    """A point in its line's own shape, so that colour is not the only difference between lines."""
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


def _path(across: PlotScale, up: PlotScale, points: list[tuple[float, float]]) -> str:
    return " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in points)
