"""The grid of an experiment: every configuration for each combination of swept parameters."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from rankbeam.pipelines.config.problems import problem_of
from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.pipelines.experiment.cells import (
    DISTANCE,
    MOST_CELLS,
    SIMILARITY,
    TOP_K,
    Cell,
    Given,
    Grid,
    beyond_most,
    wrong_beside_grid,
)
from rankbeam.pipelines.experiment.models import MOST
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, RetrieverParameters
from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean


def cells(located: Located, given: Sequence[Given], grid: Grid, problems: list[InputError]) -> list[Cell]:
    """Every configuration for each combination of the grid's values, in order.

    A parameter of the grid applies to the configurations whose retriever has it; `top_k` to all of them, and
    `vector_distance_threshold` to those that have distances.

    Args:
        located: the document, for messages.
        given: the configurations.
        grid: parameters and their values.
        problems: what is wrong is added here.
    """
    wrong = list(_wrong_in_grid(located, given, grid))
    problems += wrong
    return [
        cell
        for position, each in enumerate(given)
        for cell in _cells(located, position, each, {} if wrong else grid, problems)
    ]


def check_names(located: Located, found: Sequence[Cell], problems: list[InputError]) -> None:
    """Refuse two cells of one name, and one configuration under two names."""
    names: dict[str, Cell] = {}
    ids: dict[str, Cell] = {}
    for cell in found:
        if cell.name in names:
            problems.append(located.error((*cell.place[:2], "name"), f"two configurations are named {cell.name!r}"))
        elif cell.config_id in ids:
            other = ids[cell.config_id].name
            problems.append(located.error(cell.place[:2], f"{cell.name!r} is the same configuration as {other!r}"))
        names[cell.name] = ids[cell.config_id] = cell


def _cells(located: Located, position: int, given: Given, grid: Grid, problems: list[InputError]) -> Iterator[Cell]:
    place: Place = ("configurations", position, "retriever")
    if given.retriever is None:
        return
    values = dict(given.retriever)
    kind = values.pop("type", None)
    try:
        model = _model(located, place, kind)
    except InputError as error:
        problems.append(error)
        return
    inside = values.pop(DISTANCE, None) if DISTANCE not in model.model_fields else None
    wrong = list(_wrong_distance(located, place, model, given.vector_distance_threshold, inside))
    problems += wrong
    reach = {
        TOP_K: model.default_top_k if given.top_k is None else given.top_k,
        DISTANCE: None if wrong else given.vector_distance_threshold or inside,
    }
    names = [name for name in grid if name in _swept(model)]
    first = {name: grid[name][0] for name in names}
    problems += wrong_beside_grid(located, place, model, values, first)
    if TOP_K in first and given.top_k is not None:
        problems += beyond_most(located, (*place[:2], TOP_K), str(kind), model, given.top_k)
    given_name = given.name or f"{place[0]}[{position}]"  # what was no name is reported already
    for combination in itertools.product(*(grid[name] for name in names)):
        chosen = dict(zip(names, combination, strict=True))
        label = ",".join(f"{name}={value}" for name, value in chosen.items())
        own = {name: value for name, value in chosen.items() if name in model.model_fields}
        try:
            parameters = model.model_validate({**values, **own})
        except ValidationError as error:
            problems += [
                problem_of(located, model, dict(each), at=("grid",) if {*each["loc"][:1]} & {*own} else place)
                for each in error.errors()
            ]
            return
        name = f"{given_name}:{label}" if label else given_name
        cell = Cell(name, given_name, place, str(kind), parameters, *_reach({**reach, **chosen}))
        problems += _wrong_reach(located, cell, chosen)
        yield cell


def _reach(values: Mapping[str, Any]) -> tuple[int | None, float | None]:
    distance = values[DISTANCE]
    return values[TOP_K], None if distance is None else float(distance)


def _model(located: Located, place: Place, kind: Any) -> type[RetrieverParameters]:
    if not isinstance(kind, str):
        raise located.error((*place, "type"), "is missing" if kind is None else "is not a word")
    try:
        return RETRIEVERS.load(kind)
    except InputError as error:
        raise located.error((*place, "type"), error.problem) from error


def _swept(model: type[RetrieverParameters]) -> set[str]:
    """What a grid may give to retrievers of a type."""
    return {TOP_K, *model.model_fields, *([DISTANCE] if _has_distances(model) else [])}


def _has_distances(model: type[RetrieverParameters]) -> bool:
    return issubclass(model, RemoteRetriever) and model.has_distances


def _wrong_distance(
    located: Located, place: Place, model: type[RetrieverParameters], beside: float | None, inside: Any
) -> Iterator[InputError]:
    """What is wrong with a threshold that is given beside `top_k`, inside `retriever:`, or at both places."""
    at = (*place[:2], DISTANCE) if inside is None else (*place, DISTANCE)
    if inside is None and beside is None:
        return
    if not _has_distances(model):
        yield located.error(at, "this type of retriever has no distances; leave it out")
    elif inside is not None and not _is_distance(inside):
        yield located.error(at, f"input should be a number greater than 0, found {inside!r}")
    elif None not in (inside, beside) and inside != beside:
        yield located.error(at, f"is {inside!r} here and {beside!r} beside the retriever; keep one")


def _wrong_reach(located: Located, cell: Cell, chosen: Mapping[str, Any]) -> Iterator[InputError]:
    """What the service behind a retriever would refuse."""
    if not isinstance(cell.parameters, RemoteRetriever):
        return
    at: Place = ("grid", TOP_K) if TOP_K in chosen else (*cell.place[:2], TOP_K)
    if cell.top_k is None:
        yield located.error(at, f"is missing; a {cell.kind} retriever must be told how many results to ask for")
    else:
        yield from beyond_most(located, at, cell.kind, type(cell.parameters), cell.top_k)
    if cell.distance is not None and getattr(cell.parameters, SIMILARITY, None) is not None:
        at = ("grid", DISTANCE) if DISTANCE in chosen else (*cell.place, SIMILARITY)
        yield located.error(at, f"a retriever takes {DISTANCE} or {SIMILARITY}, not both; keep one")


def _wrong_in_grid(located: Located, given: Sequence[Given], grid: Grid) -> Iterator[InputError]:
    known, cells = {TOP_K}, 0
    for each in given:
        try:
            swept = _swept(RETRIEVERS.load(str((each.retriever or {}).get("type"))))
        except InputError:
            continue  # reported where the configuration is read
        known |= swept
        cells += math.prod(len(values) for name, values in grid.items() if name in swept)
    if cells > MOST_CELLS:
        yield located.error(("grid",), f"makes {cells:,} configurations; {MOST_CELLS:,} are the most")
    for name, values in grid.items():
        if name not in known:
            hint = did_you_mean(name, known)
            yield located.error(("grid", name), f"no configuration has this parameter; {hint}")
        elif not values:
            yield located.error(("grid", name), "lists no value")
        elif name == TOP_K and not all(type(value) is int and 1 <= value <= MOST for value in values):
            yield located.error(("grid", name), f"input should be whole numbers from 1 to {MOST:,}, found {values!r}")
        elif name == DISTANCE and not all(value is None or _is_distance(value) for value in values):
            yield located.error(("grid", name), f"input should be numbers greater than 0, or null, found {values!r}")


def _is_distance(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < math.inf
