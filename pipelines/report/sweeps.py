"""Sweeps: which configurations differ in one numeric parameter alone, and the metrics along it."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from rankbeam.pipelines.report import words
from rankbeam.pipelines.report.plots import Curve, LinePlot, Point, line_plot
from rankbeam.pipelines.report.study import INSIDE, Study

Points = list[tuple[float, int]]
"""Values of a parameter, and the configurations that have them."""


@dataclass(frozen=True)
class Line:
    """Configurations that differ in one parameter alone."""

    label: str
    points: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Sweep:
    """All lines along one parameter."""

    parameter: str
    lines: tuple[Line, ...]


def sweeps(study: Study) -> list[Sweep]:
    """Return the sweeps over numeric parameters of the experiment; a number in a name does not count."""
    bases = [row["name"].partition(":")[0] for row in study.results.configurations]
    names = dict.fromkeys(key for name_values in study.parameters for key in name_values)
    by_parameter = [_sweep(study, name, bases) for name in sorted(names, key=lambda name: name.startswith(INSIDE))]
    return [name_values for name_values in by_parameter if name_values is not None]


def _sweep(study: Study, name: str, bases: list[str]) -> Sweep | None:
    groups: dict[str, Points] = defaultdict(list)
    for position, parameters in enumerate(study.parameters):
        value = parameters.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            rest = {key: value for key, value in parameters.items() if key != name}
            groups[json.dumps(rest, sort_keys=True)].append((float(value), position))
    lines = [sorted(points) for points in groups.values() if len({value for value, _ in points}) > 1]
    if not lines:
        return None
    labels = _labels(study, bases, lines, name)
    return Sweep(name, tuple(Line(label, tuple(points)) for label, points in zip(labels, lines, strict=True)))


def plot(study: Study, sweep: Sweep, metric: str) -> LinePlot | None:
    """One metric along one parameter; None where no configuration has a value."""
    parameter, written = study.short(sweep.parameter), partial(_written, study, sweep.parameter)
    curves = [Curve(line.label, list(_points(study, line, metric, written))) for line in sweep.lines]
    return line_plot(f"{metric} along {parameter}", parameter, curves, written, highest=True)


def _points(study: Study, line: Line, metric: str, written: Callable[[float], str]) -> Iterator[Point]:
    for x, configuration in line.points:
        row = study.mean(configuration, metric)
        if row.mean is not None:
            yield x, row.mean, *(row.interval or (row.mean, row.mean)), written(x)


def _written(study: Study, parameter: str, value: float) -> str:
    return study.written(parameter, int(value) if value.is_integer() else value)


def _labels(study: Study, bases: list[str], lines: list[Points], name: str) -> list[str]:
    """Per line the names of its configurations, and the parameters that tell it from other lines of these names."""
    names = [tuple(dict.fromkeys(bases[position] for _, position in points)) for points in lines]
    firsts = [study.parameters[points[0][1]] for points in lines]
    labels = []
    for own, first in zip(names, firsts, strict=True):
        same = [label for other, label in zip(names, firsts, strict=True) if other == own]
        differing = [
            key for key in first if key != name and len({json.dumps(parameters.get(key)) for parameters in same}) > 1
        ]
        chosen = [f"{study.short(key)} {study.written(key, first[key])}" for key in differing]
        labels.append(", ".join([words.series(list(own), 3), *chosen]))
    return labels
