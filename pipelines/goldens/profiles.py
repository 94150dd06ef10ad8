"""Read the dimensions that questions vary by: Auto RAG Eval's `qa_profiles.json`, with lines in errors."""

import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rankbeam.pipelines.config.problems import problem_of
from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.goldens.records.types import Dimension, ProfileValue
from rankbeam.transforms.records.errors import InputError, InputErrors


class _Described(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    description: str = ""


class _Dimension(_Described):
    values: Annotated[dict[str, _Described], Field(min_length=1)]


class _Profiles(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

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
        problems += [problem_of(located, _Profiles, dict(detail)) for detail in error.errors()]
    if problems:
        raise InputErrors(problems)
    return tuple(
        Dimension(
            name,
            profile.description,
            tuple(ProfileValue(value, one.description) for value, one in profile.values.items()),
        )
        for name, profile in profiles.parameters.items()
    )
