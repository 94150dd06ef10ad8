"""From `configurations:` and `grid:` to the systems under test, and the sources their rankings are cut from."""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic import ValidationError

from pipelines.problems import problem_of
from pipelines.yaml_lines import Located, Place
from transforms.clients.retrievers import RetrieverParameters, parameters_class
from transforms.clients.run_file import RunFile
from transforms.records.dialects import RANKBEAM, Dialect
from transforms.records.errors import InputError
from transforms.records.evaluation import Configuration, Source
from transforms.records.suggestions import did_you_mean


class Given(Protocol):
    """An item of `configurations:` as it was given; what was not valid is None, and already reported."""

    name: str
    retriever: dict[str, Any]
    top_k: int | None


@dataclass(frozen=True)
class Expanded:
    """The result of `expand`.

    Attributes:
        configurations: every cell of the grid, in order.
        retrievers: per source, its parameters.
        sources: where rankings come from.
        places: per source, where in the document its retriever stands.
    """

    configurations: tuple[Configuration, ...]
    retrievers: tuple[RetrieverParameters, ...]
    sources: tuple[Source, ...]
    places: tuple[Place, ...]


@dataclass(frozen=True)
class _Cell:
    name: str
    place: Place
    kind: str
    parameters: RetrieverParameters
    top_k: int | None
    dialect: Dialect = RANKBEAM

    @property
    def asked(self) -> str:
        """What is asked, whatever the top_k: cells that agree in it are cut from one ranking."""
        return _canonical({"type": self.kind, **self.parameters.model_dump(mode="json")})

    @property
    def canonical(self) -> str:
        dialect = {} if self.dialect == RANKBEAM else {"dialect": self.dialect.name}
        return _canonical({"retriever": json.loads(self.asked), "top_k": self.top_k, **dialect})

    def in_dialects(self, dialects: Sequence[Dialect]) -> list["_Cell"]:
        """This cell, once for each dialect, named by it."""
        joint = "," if ":" in self.name else ":"
        return [replace(self, name=f"{self.name}{joint}dialect={each.name}", dialect=each) for each in dialects] or [
            self
        ]

    @property
    def config_id(self) -> str:
        return hashlib.sha256(self.canonical.encode()).hexdigest()[:12]


def expand(
    located: Located,
    given: Sequence[Given],
    grid: Mapping[str, Sequence[Any]],
    dialects: Sequence[Dialect],
    unit: str,
    problems: list[InputError],
) -> Expanded:
    """Cross every configuration with the grid, and group what one ranking can serve.

    A parameter of the grid applies to the configurations whose retriever has it; `top_k` to all of them.

    Args:
        located: the document, for messages.
        given: the configurations.
        grid: parameters and their values.
        dialects: by which every configuration is scored; none for rankbeam's own alone.
        unit: the dataset's unit.
        problems: what is wrong is added here.
    """
    before = len(problems)
    problems += _wrong_in_grid(located, given, grid)
    grid = grid if len(problems) == before else {}
    cells = [cell for position, each in enumerate(given) for cell in _cells(located, position, each, grid, problems)]
    cells = [spoken for cell in cells for spoken in cell.in_dialects(dialects)]
    _check_names(located, cells, problems)
    asked = list(dict.fromkeys(cell.asked for cell in cells))
    by_source = [[cell for cell in cells if cell.asked == one] for one in asked]
    primary = [max(group, key=lambda cell: (cell.top_k is None, cell.top_k or 0)) for group in by_source]
    return Expanded(
        configurations=tuple(
            Configuration(
                config_id=cell.config_id,
                name=cell.name,
                source=(source := asked.index(cell.asked)),
                retriever=cell.kind,
                parameters=cell.canonical,
                top_k=cell.top_k,
                derived_from=None if cell == primary[source] else primary[source].config_id,
                dialect=cell.dialect,
            )
            for cell in cells
        ),
        retrievers=tuple(cell.parameters for cell in primary),
        sources=tuple(Source(None, cell.top_k, _refuses_repeats(cell.parameters, unit)) for cell in primary),
        places=tuple(cell.place for cell in primary),
    )


def _refuses_repeats(parameters: RetrieverParameters, unit: str) -> bool:
    return parameters.duplicates == "refuse" if isinstance(parameters, RunFile) else unit == "chunk"


def _cells(
    located: Located, position: int, given: Given, grid: Mapping[str, Sequence[Any]], problems: list[InputError]
) -> Iterator[_Cell]:
    place: Place = ("configurations", position, "retriever")
    if given.retriever is None:
        return
    values = dict(given.retriever)
    kind = values.pop("type", None)
    if not isinstance(kind, str):
        problems.append(located.error((*place, "type"), "is missing" if kind is None else "is not a word"))
        return
    try:
        model = parameters_class(kind)
    except InputError as error:
        problems.append(located.error((*place, "type"), error.problem))
        return
    names = [name for name in grid if name == "top_k" or name in model.model_fields]
    for combination in itertools.product(*(grid[name] for name in names)):
        chosen = dict(zip(names, combination, strict=True))
        label = ",".join(f"{name}={value}" for name, value in chosen.items())
        top_k = chosen.pop("top_k", given.top_k if given.top_k is not None else model.default_top_k)
        try:
            parameters = model.model_validate({**values, **chosen})
        except ValidationError as error:
            problems += [
                problem_of(located, model, dict(each), at=("grid",) if {*each["loc"][:1]} & {*chosen} else place)
                for each in error.errors()
            ]
            return
        yield _Cell(f"{given.name}:{label}" if label else given.name, place, kind, parameters, top_k)


def _wrong_in_grid(located: Located, given: Sequence[Given], grid: Mapping[str, Sequence[Any]]) -> Iterator[InputError]:
    known = {"top_k"}
    for each in given:
        try:
            known |= set(parameters_class(str((each.retriever or {}).get("type"))).model_fields)
        except InputError:
            continue  # reported where the configuration is read
    for name, values in grid.items():
        if name not in known:
            hint = did_you_mean(name, known)
            yield located.error(("grid", name), f"no configuration has this parameter; {hint}")
        elif not values:
            yield located.error(("grid", name), "lists no value")
        elif name == "top_k" and not all(type(value) is int and value >= 1 for value in values):
            yield located.error(("grid", name), f"input should be whole numbers from 1, found {values!r}")


def _check_names(located: Located, cells: Sequence[_Cell], problems: list[InputError]) -> None:
    names: dict[str, _Cell] = {}
    ids: dict[str, _Cell] = {}
    for cell in cells:
        if cell.name is None:
            continue
        if cell.name in names:
            problems.append(located.error((*cell.place[:2], "name"), f"two configurations are named {cell.name!r}"))
        elif cell.config_id in ids:
            other = ids[cell.config_id].name
            problems.append(located.error(cell.place[:2], f"{cell.name!r} is the same configuration as {other!r}"))
        names[cell.name] = ids[cell.config_id] = cell


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
