"""The dimensions that questions vary by: Auto RAG Eval's `qa_profiles.json`, with lines in errors."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rankbeam.pipelines.config.problems import problems_of
from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.goldens.records.items import Dimension, ProfileValue, repeated_name
from rankbeam.transforms.records.errors import InputError, InputErrors

PROFILES = "profiles.json"
"""The usual name of the file."""


class _Described(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    description: str = ""


class _Dimension(_Described):
    reason: str = ""
    values: Annotated[dict[str, _Described], Field(min_length=1)]


class _Profiles(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    accepted: bool = True  # false in what a model suggested, until a person changes it
    suggested_by: dict[str, Any] = Field(default_factory=dict)
    documents: list[str] = Field(default_factory=list)
    parameters: Annotated[dict[str, _Dimension], Field(min_length=1)]


def read_profiles(path: str) -> tuple[Dimension, ...]:
    """Read a file {"parameters": {DIMENSION: {"description", "values": {VALUE: {"description"}}}}}."""
    text = files.read_all(path).decode("utf-8", "replace")
    try:
        json.loads(text)
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise InputError(f"is not valid JSON: {error}", path=path, line=line) from error
    located = load(text.replace("\t", " "), path)  # JSON is YAML but for tabs, and YAML knows lines
    problems = [located.error(place, "is given twice; keep one") for place in located.repeated]
    try:
        profiles = _Profiles.model_validate(located.value)
    except ValidationError as error:
        problems += problems_of(located, _Profiles, error)
    if problems:
        raise InputErrors(problems)
    if not profiles.accepted:
        problem = "a model suggested these profiles; read and edit them, then set accepted to true"
        raise located.error(("accepted",), problem)
    dimensions = tuple(
        Dimension(
            name,
            profile.description,
            tuple(ProfileValue(value, one.description) for value, one in profile.values.items()),
            profile.reason,
        )
        for name, profile in profiles.parameters.items()
    )
    if (name := repeated_name(dimensions)) is not None:
        problem = f"{name!r} has the column of another dimension; rename one"
        raise located.error(("parameters", name), problem)
    return dimensions


def suggested(dimensions: Sequence[Dimension], model: dict[str, Any], documents: Sequence[str]) -> bytes:
    """The file of dimensions that a model suggested; `read_profiles` refuses it until a person accepts it."""
    parameters = {
        one.name: {
            "description": one.description,
            "reason": one.reason,
            "values": {value.name: {"description": value.description} for value in one.values},
        }
        for one in dimensions
    }
    content = {"accepted": False, "suggested_by": model, "documents": list(documents), "parameters": parameters}
    return f"{json.dumps(content, indent=2, ensure_ascii=False)}\n".encode("utf-8", "replace")
