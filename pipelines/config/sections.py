"""Sections of a YAML file: their base class, the types of their values, and their problems as text.

Pydantic's errors become messages in the user's terms: the line, the key, the value, the nearest valid name.
"""

import contextlib
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument
from rankbeam.transforms.clients.extras import MISSING
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.wrong_values import in_one, in_words, without_types

MOST = (1 << 31) - 1
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=MOST)]
Price = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Word = Annotated[str, Field(min_length=1)]
Samples = Annotated[int, Field(ge=1, le=100)]


class Section(BaseModel):
    """A mapping in the file: unknown keys are refused, and no value is converted to another type."""

    model_config = ConfigDict(extra="forbid", strict=True)

    bare: ClassVar[tuple[str, type] | None] = None  # instead of a mapping, a value of this type sets this key

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        return cls.expand_bare(value)

    @classmethod
    def expand_bare(cls, value: Any) -> Any:
        return {cls.bare[0]: value} if cls.bare is not None and isinstance(value, cls.bare[1]) else value


Model = TypeVar("Model", bound=BaseModel)

_KEY = "[key]"  # suffix that pydantic adds to the place of an invalid key


def problems_of(
    located: YamlDocument, model: type[BaseModel], error: ValidationError, at: Place = ()
) -> list[InputError]:
    """All problems of a value in the user's terms, one for each place."""
    return [problem_of(located, model, detail, at) for detail in in_one(error.errors())]


def problem_of(located: YamlDocument, model: type[BaseModel], error: dict[str, Any], at: Place = ()) -> InputError:
    place: Place = (*at, *without_types(tuple(part for part in error["loc"] if part != _KEY)))
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        valid = _keys_of(model, error["loc"][:-1])
        return located.error(place, f"unknown key; {did_you_mean(str(place[-1]), valid)}")
    if kind == "missing":
        return located.error(place, "is missing")
    # pydantic's own setting for models whose values may be secrets
    hidden = kind == MISSING or model.model_config.get("hide_input_in_errors")
    shown = "" if hidden else f", found {_short_repr(value)}"
    return located.error(place, f"{in_words(error)}{shown}")


def _keys_of(model: type[BaseModel] | None, place: Place) -> list[str]:
    is_key = False
    for part in place:
        if isinstance(part, str) and model is not None and not is_key:
            annotation = model.model_fields[part].annotation
            model, is_key = _model_in(annotation), get_origin(annotation) is dict
        else:
            is_key = False
    return [] if model is None else list(model.model_fields)


def _short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def parse_part(model: type[Model], value: object, located: YamlDocument, place: Place) -> Model | None:
    """The model of a part of a file; None if it is invalid, after adding the problems."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        located.problems.extend(problems_of(located, model, error, place))
        return None


def parse_model(model: type[Model], located: YamlDocument) -> Model:
    """The model of a file; if it is invalid, its valid parts, after adding the problems."""
    try:
        return model.model_validate(located.value)
    except ValidationError as error:
        located.problems.extend(problems_of(located, model, error))
        return salvage(model, located.value)


def salvage(model: type[Model], value: object) -> Model:
    """The valid parts of a value that is not a valid `model`, so that one pass can check them further."""
    content = model.expand_bare(value) if issubclass(model, Section) else value
    content = content if isinstance(content, dict) else {}
    partial = model.model_construct()
    for name, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        stated = content.get(name)
        if inner is not None and (stated is not None or field.is_required()):
            partial.__dict__[name] = _salvage_field(inner, get_origin(field.annotation), stated)
            continue
        partial.__dict__[name] = None if field.is_required() else field.get_default(call_default_factory=True)
        if name in content:
            partial.__pydantic_fields_set__.add(name)
            with contextlib.suppress(ValidationError):
                partial.__pydantic_validator__.validate_assignment(partial, name, stated)
    return partial


def _salvage_field(model: type[BaseModel], origin: Any, value: object) -> Any:
    """Return the valid part of a model, of a list of models, or of models by name."""
    if origin is list:
        return [salvage(model, item) for item in value if isinstance(item, dict)] if isinstance(value, list) else None
    if origin is dict:
        named = value if isinstance(value, dict) else {}
        return {name: salvage(model, item) for name, item in named.items()}
    return salvage(model, value)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in a field, directly or as the items of a list."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None
