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


def _labelled(swept: Any) -> Any:
    """Values with their labels, which replace long values in names; by default a value is its own label.

    >>> _labelled({"small": "projects/p/c/1"}), _labelled([5, 10])
    ([('small', 'projects/p/c/1')], [('5', 5), ('10', 10)])
    """
    if isinstance(swept, dict):
        return [(str(label), value) for label, value in swept.items()]
    return [(str(value), value) for value in swept] if isinstance(swept, list) else swept


Swept = Annotated[
    list[tuple[str, Any]],
    BeforeValidator(_labelled),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {}}, {"type": "object", "additionalProperties": {}}]}),
]
"""The values of a parameter of the grid, each with its label."""


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
