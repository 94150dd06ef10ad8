"""The cells of a grid: every configuration of an experiment file, for each combination of swept parameters."""

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic import ValidationError

from pipelines.models import MOST
from pipelines.problems import problem_of
from pipelines.yaml_lines import Located, Place
from transforms.clients.remote import RemoteRetriever
from transforms.clients.retrievers import RetrieverParameters, parameters_class
from transforms.records.dialects import RANKBEAM, Dialect
from transforms.records.errors import InputError
from transforms.records.suggestions import did_you_mean

TOP_K, DISTANCE, SIMILARITY = "top_k", "vector_distance_threshold", "vector_similarity_threshold"

_MOST_CELLS = 10_000

Grid = Mapping[str, Sequence[Any]]


class Given(Protocol):
    """An item of `configurations:` as it was given; what was not valid is None, and already reported."""

    name: str
    retriever: dict[str, Any]
    top_k: int | None
    vector_distance_threshold: float | None


@dataclass(frozen=True)
class Cell:
    """One configuration of the grid.

    Attributes:
        name: for people, with the values that the grid chose.
        given: the name under `configurations:`.
        place: where its retriever stands.
        kind: the retriever's type.
        parameters: of the retriever.
        top_k: results per query; None for all.
        distance: only results nearer than this; None for all.
        dialect: by which it is scored.
        parts: the cells that it is fused of.
    """

    name: str
    given: str
    place: Place
    kind: str
    parameters: RetrieverParameters
    top_k: int | None
    distance: float | None = None
    dialect: Dialect = RANKBEAM
    parts: tuple["Cell", ...] = ()

    @property
    def canonical(self) -> str:
        """All that decides its scores, as JSON."""
        return _canonical(self._decisive)

    @property
    def config_id(self) -> str:
        """Its name for programs."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()[:12]

    @property
    def asked(self) -> str:
        """What is asked: cells that agree in it are cut from one ranking."""
        reach = {}
        if isinstance(self.parameters, RemoteRetriever) and not self.parameters.is_prefix():
            reach = {TOP_K: self.top_k, DISTANCE: self.distance}
        return _canonical({"retriever": self._retriever, **reach})

    @property
    def cut(self) -> float | None:
        """Only results nearer than this are looked at; None where the service was asked for exactly these."""
        asked_exactly = isinstance(self.parameters, RemoteRetriever) and not self.parameters.is_prefix()
        return None if asked_exactly else self.distance

    @property
    def lower_is_better(self) -> bool:
        """Whether its scores are distances."""
        has_distances = getattr(self.parameters, "has_distances", False)
        return bool(getattr(self.parameters, "lower_is_better", has_distances))

    @property
    def width(self) -> tuple[bool, int, bool, float]:
        """How far it goes into the ranking: by results, then by distance."""
        return self.top_k is None, self.top_k or 0, self.distance is None, self.distance or 0.0

    def in_dialects(self, dialects: Sequence[Dialect]) -> list["Cell"]:
        """This cell, once for each dialect and named by it; in rankbeam's own it has the name that it has without."""
        return [replace(self, name=self._name_in(each), dialect=each) for each in dialects] or [self]

    def _name_in(self, dialect: Dialect) -> str:
        if dialect == RANKBEAM:
            return self.name
        return f"{self.name}{',' if ':' in self.name else ':'}dialect={dialect.name}"

    @property
    def _decisive(self) -> dict[str, Any]:
        distance = {} if self.distance is None else {DISTANCE: self.distance}
        dialect = {} if self.dialect == RANKBEAM else {"dialect": self.dialect.name}
        return {"retriever": self._retriever, TOP_K: self.top_k, **distance, **dialect}

    @property
    def _retriever(self) -> dict[str, Any]:
        parts = {"parts": [part._decisive for part in self.parts]} if self.parts else {}
        return {"type": self.kind, **self.parameters.decisive(), **parts}


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
    problems += _wrong_beside_grid(located, place, model, values, first)
    if TOP_K in first and given.top_k is not None:
        problems += _beyond_most(located, (*place[:2], TOP_K), str(kind), model, given.top_k)
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


def _wrong_beside_grid(
    located: Located,
    place: Place,
    model: type[RetrieverParameters],
    values: Mapping[str, Any],
    first: Mapping[str, Any],
) -> Iterator[InputError]:
    """What is wrong with parameters of a configuration that the grid replaces, and so no cell has.

    Args:
        located: the document, for messages.
        place: where the retriever stands.
        model: its type.
        values: its parameters.
        first: the first value of each parameter that the grid sweeps.
    """
    own = {name: value for name, value in first.items() if name in model.model_fields}
    try:
        model.model_validate({**own, **values})
    except ValidationError as error:
        for each in error.errors():
            if {*each["loc"][:1]} & {*own} & {*values}:
                yield problem_of(located, model, dict(each), at=place)


def _reach(values: Mapping[str, Any]) -> tuple[int | None, float | None]:
    distance = values[DISTANCE]
    return values[TOP_K], None if distance is None else float(distance)


def _model(located: Located, place: Place, kind: Any) -> type[RetrieverParameters]:
    if not isinstance(kind, str):
        raise located.error((*place, "type"), "is missing" if kind is None else "is not a word")
    try:
        return parameters_class(kind)
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
        yield from _beyond_most(located, at, cell.kind, type(cell.parameters), cell.top_k)
    if cell.distance is not None and getattr(cell.parameters, SIMILARITY, None) is not None:
        at = ("grid", DISTANCE) if DISTANCE in chosen else (*cell.place, SIMILARITY)
        yield located.error(at, f"a retriever takes {DISTANCE} or {SIMILARITY}, not both; keep one")


def _beyond_most(
    located: Located, at: Place, kind: str, model: type[RetrieverParameters], top_k: int
) -> Iterator[InputError]:
    most = model.most_results if issubclass(model, RemoteRetriever) else None
    if most is not None and top_k > most:
        yield located.error(at, f"a {kind} retriever returns at most {most} results, found {top_k}")


def _wrong_in_grid(located: Located, given: Sequence[Given], grid: Grid) -> Iterator[InputError]:
    known, cells = {TOP_K}, 0
    for each in given:
        try:
            swept = _swept(parameters_class(str((each.retriever or {}).get("type"))))
        except InputError:
            continue  # reported where the configuration is read
        known |= swept
        cells += math.prod(len(values) for name, values in grid.items() if name in swept)
    if cells > _MOST_CELLS:
        yield located.error(("grid",), f"makes {cells:,} configurations; {_MOST_CELLS:,} are the most")
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


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
