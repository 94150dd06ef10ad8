"""The cells of a grid: every configuration of an experiment file, for each combination of swept parameters."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic import ValidationError

from rankbeam.pipelines.config.problems import problem_of
from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.transforms.clients.retrievers.base import RetrieverParameters
from rankbeam.transforms.clients.retrievers.remote import RemoteRetriever
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.dialects import RANKBEAM, Dialect

TOP_K, DISTANCE, SIMILARITY = "top_k", "vector_distance_threshold", "vector_similarity_threshold"

MOST_CELLS = 10_000

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


def wrong_beside_grid(
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


def beyond_most(
    located: Located, at: Place, kind: str, model: type[RetrieverParameters], top_k: int
) -> Iterator[InputError]:
    """More results than one call to a service can bring."""
    most = model.most_results if issubclass(model, RemoteRetriever) else None
    if most is not None and top_k > most:
        yield located.error(at, f"a {kind} retriever returns at most {most} results, found {top_k}")


def _canonical(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
