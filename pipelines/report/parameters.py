"""The parameters in which configurations differ: a column each, to filter by, and a heat map for each pair."""

import itertools
import json
from dataclasses import dataclass
from typing import Any

from rankbeam.pipelines.report import words
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.report.sweeps import flat

MOST_PARAMETERS, MOST_VALUES, MOST_MAPS = 8, 16, 12
_LEVELS = 5
_INSIDE = "retriever."

Values = dict[int, str]
"""What configurations have, as people read it."""


@dataclass(frozen=True)
class Parameter:
    """A parameter in which configurations differ.

    Attributes:
        name: as in the experiment.
        of: its value by configuration; "–" for one that has no such parameter.
        values: the distinct ones, in their order.
    """

    name: str
    of: Values
    values: list[str]


@dataclass(frozen=True)
class HeatMap:
    """The highest mean for every pair of values of two parameters.

    Attributes:
        row, column: the parameters.
        rows: value of the first, and a cell for each value of the second: mean, level and configuration.
    """

    row: Parameter
    column: Parameter
    rows: list[tuple[str, list[tuple[str, int | None, str]]]]


def parameters(study: Study) -> list[Parameter]:
    """The parameters in which configurations differ, those with the fewest values first; a text is no parameter."""
    rows = {place: flat(json.loads(study.results.configurations[place]["parameters"])) for place in study.titles}
    names = dict.fromkeys(name for row in rows.values() for name in row)
    labels = study.results.labels
    known = [
        _parameter(name, {place: row.get(name) for place, row in rows.items()}, labels.get(name.rpartition(".")[2], {}))
        for name in names
    ]
    differing = [each for each in known if 1 < len(each.values) <= MOST_VALUES]
    return sorted(differing, key=lambda each: len(each.values))[:MOST_PARAMETERS]


def _parameter(name: str, of: dict[int, Any], labels: dict[str, str]) -> Parameter:
    order = sorted(of.values(), key=lambda value: (isinstance(value, str), value if _is_number(value) else 0))
    return Parameter(
        name.removeprefix(_INSIDE),
        {place: labels.get(json.dumps(value)) or _written(value) for place, value in of.items()},
        list(dict.fromkeys(labels.get(json.dumps(value)) or _written(value) for value in order)),
    )


def heat_maps(study: Study, metric: str, known: list[Parameter]) -> list[HeatMap]:
    """A map for each pair of parameters that are combined with each other."""
    pairs = itertools.combinations(known, 2)
    maps = [_heat_map(study, metric, *sorted(pair, key=lambda each: -len(each.values))) for pair in pairs]
    return [each for each in maps if each is not None][:MOST_MAPS]


def _heat_map(study: Study, metric: str, row: Parameter, column: Parameter) -> HeatMap | None:
    best: dict[tuple[str, str], tuple[float, int]] = {}
    for place in study.titles:
        mean = study.mean(place, metric).mean
        if mean is not None:
            key = row.of[place], column.of[place]
            best[key] = max(best.get(key, (mean, place)), (mean, place), key=lambda each: each[0])
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
            min(_LEVELS - 1, int((mean - low) / ((high - low) or 1.0) * _LEVELS)),
            study.titles[place],
        )

    return HeatMap(row, column, [(one, [cell(one, other) for other in column.values]) for one in row.values])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written(value: Any) -> str:
    if value is None:
        return "–"
    if _is_number(value):
        return words.plain_number(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
