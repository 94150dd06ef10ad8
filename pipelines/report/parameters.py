"""The parameters in which configurations differ: columns to filter by, heat maps of pairs, and sweeps.

Configurations that differ only in one numeric parameter form a line, and all lines along the parameter a sweep.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

from rankbeam.pipelines.report import words
from rankbeam.pipelines.report.plots import Curve, LinePlot, Point, line_plot
from rankbeam.pipelines.report.study import INSIDE, Study
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.stages import ADDED

MOST_PARAMETERS, MOST_VALUES, MOST_MAPS = 8, 16, 12
_TYPE = f"{INSIDE}type"


@dataclass(frozen=True)
class Parameter:
    """A parameter in which configurations differ."""

    name: str
    of: list[str]
    values: list[str]

    def shown(self, places: Sequence[int]) -> str:
        """The values for configurations that share a row."""
        return ", ".join(self.values[place] for place in self.chosen(places))

    def chosen(self, places: Sequence[int]) -> list[int]:
        return sorted({self.values.index(self.of[place]) for place in places})


def parameters(study: Study) -> list[Parameter]:
    """Return the parameters in which configurations differ, those with the fewest values first.

    Parameters that merely follow from the type of a retriever or stage, such as `k1`, are left out.
    """
    names = dict.fromkeys(name for row in study.parameters for name in row)
    types = [row.get(_TYPE) for row in study.parameters]
    columns = {name: [row.get(name) for row in study.parameters] for name in names}
    stages = {stage: column for stage in ADDED if any(column := [_stage(row, stage) for row in study.parameters])}
    differing_columns = {
        name: column
        for name, column in columns.items()
        if name == _TYPE or _varies([*map(str, stages.get(name.partition(".")[0], types))], column)
    }
    candidates = [_parameter(study, name, column) for name, column in (stages | differing_columns).items()]
    differing = [parameter for parameter in candidates if 1 < len(parameter.values) <= MOST_VALUES]
    return sorted(differing, key=lambda parameter: len(parameter.values))[:MOST_PARAMETERS]


def _stage(parameters: Mapping[str, Any], stage: str) -> str | None:
    """The name of a configuration's stage; None if it has none."""
    names = (f"{stage}.{name}" for name in ("kind", "type", "service.type"))
    return next((str(parameters[name]) for name in names if parameters.get(name)), None)


def _varies(types: Sequence[Any], values: Sequence[Any]) -> bool:
    """Return whether configurations of one type have several values."""
    distinct = {(json.dumps(kind), json.dumps(value)) for kind, value in zip(types, values, strict=True)}
    return len(distinct) > len({kind for kind, _ in distinct})


def _parameter(study: Study, name: str, of: list[Any]) -> Parameter:
    order = sorted(of, key=lambda value: (isinstance(value, str), value if _is_number(value) else 0))
    return Parameter(
        study.short(name),
        [study.written(name, value) for value in of],
        list(dict.fromkeys(study.written(name, value) for value in order)),
    )


def heat_maps(study: Study, metric: str, known: list[Parameter], *, is_swept: bool) -> list[dict[str, Any]]:
    """The best means by the values of two parameters: one map for each pair of combined parameters.

    If configurations differ in only two parameters, the plot of a sweep already shows the same means.
    """
    pairs = itertools.combinations(known if len(known) > 2 or not is_swept else [], 2)
    maps = [_heat_map(study, metric, *sorted(pair, key=lambda parameter: -len(parameter.values))) for pair in pairs]
    return [mapping for mapping in maps if mapping is not None][:MOST_MAPS]


def _heat_map(study: Study, metric: str, row: Parameter, column: Parameter) -> dict[str, Any] | None:
    sign, best = study.results.sign_of(metric), dict[tuple[str, str], tuple[float, int]]()
    for place in range(len(study.names)):
        mean = study.mean(place, metric).mean
        if mean is not None:
            key = row.of[place], column.of[place]
            best[key] = max(best.get(key, (mean, place)), (mean, place), key=lambda entry: sign * entry[0])
    crossed = sum(len({key[1] for key in best if key[0] == value}) > 1 for value in row.values)
    if crossed < 2:  # if one parameter determines the other, there is nothing to see
        return None
    means = [mean for mean, _ in best.values()]
    low, high = min(means), max(means)

    def cell(one: str, other: str) -> tuple[str, int | None, str]:
        if (one, other) not in best:
            return words.value(None), None, ""
        mean, place = best[one, other]
        return words.value(mean), words.level(mean, low, high), study.names[place]

    rows = [(one, [cell(one, other) for other in column.values]) for one in row.values]
    return {"row": row, "column": column, "rows": rows}


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


Points = list[tuple[float, int]]  # values of a parameter, and the configurations that have them


def sweeps(study: Study) -> dict[str, list[tuple[str, Points]]]:
    """The sweeps over the experiment's numeric parameters, each with its lines."""
    bases = [row["name"].partition(":")[0] for row in study.results.configurations]
    names = dict.fromkeys(key for name_values in study.parameters for key in name_values)
    known = {name: _lines(study, name, bases) for name in sorted(names, key=lambda name: name.startswith(INSIDE))}
    return {name: lines for name, lines in known.items() if lines}


def _lines(study: Study, name: str, bases: list[str]) -> list[tuple[str, Points]]:
    """The lines along a parameter, each with its label: configurations that differ only in this parameter."""
    points_by_rest = []
    for position, parameters in enumerate(study.parameters):
        if _is_number(value := parameters.get(name)):
            rest = {key: value for key, value in parameters.items() if key != name}
            points_by_rest.append((json.dumps(rest, sort_keys=True), (float(value), position)))
    lines = [sorted(points) for points in grouped(points_by_rest).values() if len({value for value, _ in points}) > 1]
    return list(zip(_labels(study, bases, lines, name), lines, strict=True))


def plot(study: Study, parameter: str, lines: list[tuple[str, Points]], metric: str) -> LinePlot | None:
    """One metric along one parameter; None if no configuration has a value."""
    short, written = study.short(parameter), partial(_format_value, study, parameter)
    curves = [Curve(label, list(_points(study, points, metric, written))) for label, points in lines]
    sign = study.results.sign_of(metric)
    curves.sort(key=lambda curve: -max((sign * point[1] for point in curve.points), default=-math.inf))
    return line_plot(f"{metric} along {short}", short, curves, written)


def _points(study: Study, points: Points, metric: str, written: Callable[[float], str]) -> Iterator[Point]:
    for x, configuration in points:
        row = study.mean(configuration, metric)
        if row.mean is not None:
            yield x, row.mean, *row.ends, written(x)


def _format_value(study: Study, parameter: str, value: float) -> str:
    return study.written(parameter, int(value) if value.is_integer() else value)


def _labels(study: Study, bases: list[str], lines: list[Points], name: str) -> list[str]:
    """Each line's configuration names, and the parameters that distinguish it from other lines with these names."""
    names = [tuple(dict.fromkeys(bases[position] for _, position in points)) for points in lines]
    firsts = [study.parameters[points[0][1]] for points in lines]
    labels = []
    for line, first in zip(names, firsts, strict=True):
        peers = [label for other, label in zip(names, firsts, strict=True) if other == line]
        differing = [
            key for key in first if key != name and len({json.dumps(parameters.get(key)) for parameters in peers}) > 1
        ]
        details = [f"{study.short(key)} {study.written(key, first[key])}" for key in differing]
        labels.append(", ".join([words.series(list(line), 3), *details]))
    return labels
