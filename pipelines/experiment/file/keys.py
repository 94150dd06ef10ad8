"""Keys and values of an experiment file that several sections share, and components as the file has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from rankbeam.pipelines.config.yaml_lines import Place
from rankbeam.transforms.clients.parameters import Parameters

TOP_K, DISTANCE, SIMILARITY = "top_k", "vector_distance_threshold", "vector_similarity_threshold"
MIN_SCORE = "min_score"
SPAN = "span"
Samples = Annotated[int, Field(ge=1, le=100)]


def _values(swept: Any) -> Any:
    """The values alone, from a list or from a mapping of labels to values."""
    return list(swept.values()) if isinstance(swept, dict) else swept


Swept = Annotated[
    list[Any],
    BeforeValidator(_values),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {}}, {"type": "object", "additionalProperties": {}}]}),
]
"""The values of a parameter of the grid: a list, or values by labels."""


Model = TypeVar("Model", bound=Parameters, covariant=True)


@dataclass(frozen=True)
class ComponentSettings(Generic[Model]):
    """A component as the file has it, before the grid replaces any of its parameters."""

    role: str
    place: Place
    kind: str  # empty if there is only one
    model: type[Model]
    values: Mapping[str, Any]
    fixed: frozenset[str] = frozenset()  # parameters that the grid cannot replace
