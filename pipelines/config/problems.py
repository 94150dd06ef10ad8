"""Pydantic's errors in the user's terms: the line, the key, the value, the nearest valid name."""

import contextlib
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from rankbeam.pipelines.config.yaml_lines import Located, Place
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import did_you_mean

Model = TypeVar("Model", bound=BaseModel)


def problem_of(located: Located, model: type[BaseModel], error: dict[str, Any], at: Place = ()) -> InputError:
    """One of pydantic's errors in the user's terms.

    Args:
        located: the document.
        model: what was validated.
        error: an item of `ValidationError.errors()`.
        at: where in the document the validated value stands.
    """
    place: Place = (*at, *error["loc"])
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        valid = _keys_of(model, error["loc"][:-1])
        return located.error(place, f"unknown key; {did_you_mean(str(place[-1]), valid)}")
    if kind == "missing":
        return located.error(place, "is missing")
    message = error["msg"].removeprefix("Value error, ")
    # Pydantic's own setting for models whose values may be secrets.
    found = "" if model.model_config.get("hide_input_in_errors") else f", found {_shown(value)}"
    return located.error(place, f"{message[0].lower()}{message[1:]}{found}")


def _keys_of(model: type[BaseModel] | None, place: Place) -> list[str]:
    for part in place:
        if isinstance(part, str) and model is not None:
            model = _model_in(model.model_fields[part].annotation)
    return [] if model is None else list(model.model_fields)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def salvage(model: type[Model], value: object) -> Model:
    """What can be used of a value that is no valid `model`, so that the rest of it is checked in the same pass.

    Args:
        model: what the value should be.
        value: what was given.

    Returns:
        A model whose fields are the valid ones; the others have their default, or None. Models inside it, and the
        items of lists of models, are salvaged in turn.
    """
    given = value if isinstance(value, dict) else {}
    kept = model.model_construct()
    for name, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        found = given.get(name)
        if inner is not None:
            parts = (
                [salvage(inner, item) for item in found if isinstance(item, dict)] if isinstance(found, list) else None
            )
            kept.__dict__[name] = parts if _is_list(field.annotation) else salvage(inner, found)
            continue
        kept.__dict__[name] = None if field.is_required() else field.get_default(call_default_factory=True)
        if name in given:
            with contextlib.suppress(ValidationError):
                kept.__pydantic_validator__.validate_assignment(kept, name, found)
    return kept


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, directly or as the items of a list."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None
