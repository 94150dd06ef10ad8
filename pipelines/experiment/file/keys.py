"""Base of the sections of an experiment file, types of their values, and keys that several readers share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from rankbeam.pipelines.config.yaml_lines import Place
from rankbeam.transforms.clients.parameters import Parameters

TOP_K, DISTANCE, SIMILARITY = "top_k", "vector_distance_threshold", "vector_similarity_threshold"
MIN_SCORE = "min_score"
SPAN = "span"
MOST = (1 << 31) - 1
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=MOST)]
Price = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Word = Annotated[str, Field(min_length=1)]
Samples = Annotated[int, Field(ge=1, le=100)]


def _values(swept: Any) -> Any:
    """The values alone, of a list of them or of values by their labels."""
    return list(swept.values()) if isinstance(swept, dict) else swept


Swept = Annotated[
    list[Any],
    BeforeValidator(_values),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {}}, {"type": "object", "additionalProperties": {}}]}),
]
"""The values of a parameter of the grid: a list, or values by labels."""


class Section(BaseModel):
    """A mapping of the file: keys that it does not name are refused, and no value is converted to another type."""

    model_config = ConfigDict(extra="forbid", strict=True)

    bare: ClassVar[tuple[str, type] | None] = None  # in place of a mapping, a value of this type sets this key

    @model_validator(mode="before")
    @classmethod
    def _bare_value(cls, value: Any) -> Any:
        return {cls.bare[0]: value} if cls.bare is not None and isinstance(value, cls.bare[1]) else value


Model = TypeVar("Model", bound=Parameters, covariant=True)


@dataclass(frozen=True)
class ComponentSettings(Generic[Model]):
    """A component as the file has it, before the grid replaces any of its parameters."""

    role: str
    place: Place
    kind: str  # empty where there is one only
    model: type[Model]
    values: Mapping[str, Any]
    fixed: frozenset[str] = frozenset()  # parameters that the grid cannot replace
