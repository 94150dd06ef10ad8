"""The parameters in which configurations differ: a column each, to filter by, and a heat map for each pair."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.report import words
from rankbeam.pipelines.report.study import INSIDE, Study
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
        """The values of configurations that share a row."""
        return ", ".join(self.values[place] for place in self.chosen(places))

    def chosen(self, places: Sequence[int]) -> list[int]:
        return sorted({self.values.index(self.of[place]) for place in places})


@dataclass(frozen=True)
class HeatMap:
    """The highest mean for every pair of values of two parameters."""

    row: Parameter
    column: Parameter
    rows: list[tuple[str, list[tuple[str, int | None, str]]]]


def parameters(study: Study) -> list[Parameter]:
    """Return the parameters in which configurations differ, those with the fewest values first.

    Parameters that merely follow the type of a retriever or stage, such as `k1` beside a service, say no more than it.
    """
    names = dict.fromkeys(name for row in study.parameters for name in row)
    types = [row.get(_TYPE) for row in study.parameters]
    columns = {name: [row.get(name) for row in study.parameters] for name in names}
    of_stages = {stage: column for stage in ADDED if any(column := [_stage(row, stage) for row in study.parameters])}
    differing_columns = {
        name: column
        for name, column in columns.items()
        if name == _TYPE or _varies([*map(str, of_stages.get(name.partition(".")[0], types))], column)
    }
    known = [_parameter(study, name, column) for name, column in (of_stages | differing_columns).items()]
    differing = [parameter for parameter in known if 1 < len(parameter.values) <= MOST_VALUES]
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


def heat_maps(study: Study, metric: str, known: list[Parameter], *, is_swept: bool) -> list[HeatMap]:
    """A map for each pair of parameters that are combined with each other.

    If configurations differ in two parameters only, the plot of a sweep shows the same means already.
    """
    pairs = itertools.combinations(known if len(known) > 2 or not is_swept else [], 2)
    maps = [_heat_map(study, metric, *sorted(pair, key=lambda parameter: -len(parameter.values))) for pair in pairs]
    return [mapping for mapping in maps if mapping is not None][:MOST_MAPS]


def _heat_map(study: Study, metric: str, row: Parameter, column: Parameter) -> HeatMap | None:
    best: dict[tuple[str, str], tuple[float, int]] = {}
    for place in range(len(study.names)):
        mean = study.mean(place, metric).mean
        if mean is not None:
            key = row.of[place], column.of[place]
            best[key] = max(best.get(key, (mean, place)), (mean, place), key=lambda entry: entry[0])
    crossed = sum(len({key[1] for key in best if key[0] == value}) > 1 for value in row.values)
    if crossed < 2:  # where one parameter decides the other, there is nothing to see
        return None
    means = [mean for mean, _ in best.values()]
    low, high = min(means), max(means)

    def cell(one: str, other: str) -> tuple[str, int | None, str]:
        if (one, other) not in best:
            return words.value(None), None, ""
        mean, place = best[one, other]
        return (
            words.value(mean),
            words.level(mean, low, high),
            study.names[place],
        )

    return HeatMap(row, column, [(one, [cell(one, other) for other in column.values]) for one in row.values])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
