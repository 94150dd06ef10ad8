"""Stages around a retriever, `rewrite:` and `rerank:`, as an item of `configurations:` or the grid gives them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.pipelines.experiment.file.generate import ModelRerankParameters
from rankbeam.pipelines.experiment.file.labels import Labels
from rankbeam.pipelines.experiment.file.models import ConfigurationModel
from rankbeam.pipelines.experiment.grid.cells import Grid
from rankbeam.pipelines.experiment.grid.components import RERANK, REWRITE
from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, Route
from rankbeam.transforms.clients.retrievers.rerankers import RERANKERS
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean

STAGES = (REWRITE, RERANK)
"""Components that the grid can also replace as a whole."""


@dataclass(frozen=True)
class Variant:
    """One item of `configurations:`, with the stages that the grid gives it."""

    item: ConfigurationModel
    position: int
    labels: tuple[str, ...] = ()
    swept: Mapping[str, Place] = field(default_factory=dict)

    @property
    def configuration(self) -> Place:
        return "configurations", self.position

    def place(self, role: str) -> Place:
        return self.swept.get(role, (*self.configuration, role))

    def with_stage(self, role: str, value: Any, label: str, place: Place) -> "Variant":
        item = self.item.model_copy(update={role: value})
        return replace(self, item=item, labels=(*self.labels, f"{role}={label}"), swept={**self.swept, role: place})


def variants(
    items: Sequence[ConfigurationModel], grid: Grid, labels: Labels, places: Mapping[str, Any]
) -> list[Variant]:
    """Every item with each combination of the stages of the grid that it can have."""
    every = [Variant(item, position) for position, item in enumerate(items)]
    for role in [name for name in grid if name in STAGES]:
        keys = list(places[role]) if isinstance(places.get(role), dict) else range(len(grid[role]))
        stages = list(zip(grid[role], labels[role], keys, strict=True))
        every = [
            each_variant
            for variant in every
            for each_variant in (
                [variant.with_stage(role, value, label, ("grid", role, key)) for value, label, key in stages]
                if can_have(role, variant.item)
                else [variant]
            )
        ]
    return every


def can_have(role: str, item: ConfigurationModel) -> bool:
    """Return whether the grid can give a configuration this stage.

    Answers that exist already have no stages, and only a retriever that receives the query itself can be asked another.
    """
    values = item.retriever
    if values is None or role != REWRITE:
        return values is not None
    if not isinstance(kind := values.get("type"), str) or kind not in RETRIEVERS.types:
        return True  # its type is refused elsewhere
    is_asked = RETRIEVERS.load(kind).route in (Route.OPENED, Route.CALLED)
    return is_asked and values.get("query_vectors") is None and values.get("query") != "history"


def wrong_stages(located: Located, items: Sequence[ConfigurationModel], grid: Grid) -> Iterator[InputError]:
    """Report stages of the grid that no configuration can have, and values that cannot be a stage."""
    for role in STAGES:
        if role in grid and not grid[role]:
            yield located.error(("grid", role), "lists no value")
        elif role in grid and items and not any(can_have(role, item) for item in items):
            needed = "a retriever that receives the query" if role == REWRITE else "a retriever"
            yield located.error(("grid", role), f"no configuration can have it: none has {needed}")
        for value in grid.get(role, ()):
            if value is not None and not isinstance(value, dict):
                problem = f"must be mappings such as {{service: NAME}}, or null, found {value!r}"
                yield located.error(("grid", role), problem)


def reranker_model(located: Located, place: Place, values: Mapping[str, Any]) -> tuple[str, type[Parameters]]:
    """Type and parameters of a `rerank:`; the type is "" where it names a service."""
    if ("type" in values) == ("service" in values):
        problem = "has a type and a service; keep one" if "type" in values else "is missing, and so is service"
        raise located.error((*place, "type"), problem)
    if "service" in values:
        return "", ModelRerankParameters
    if not isinstance(values["type"], str):
        raise located.error((*place, "type"), "is not a word")
    if values["type"] not in RERANKERS.types:
        hint = did_you_mean(values["type"], [*RERANKERS.types])
        raise located.error((*place, "type"), f"unknown reranker type {values['type']!r}; {hint}")
    return values["type"], RERANKERS.load(values["type"])
