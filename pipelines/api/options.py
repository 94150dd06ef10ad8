"""The options of `rankbeam.score`, checked as the command line checks its own."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rankbeam.pipelines.config.problems import problems_of
from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.run.score import ScoreOptions
from rankbeam.transforms.records.errors import InputError, InputErrors


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    metrics: tuple[str, ...] = ()
    relevance_level: Annotated[float, Field(gt=0)] | None = None
    max_documents: Annotated[int, Field(ge=1)] | None = None
    judged_only: bool = False
    duplicates: Literal["refuse", "collapse"] = "refuse"
    ties: bool = False
    dialects: tuple[str, ...] = ()
    replicates: Annotated[int, Field(ge=0, le=100_000)] = 1000
    confidence: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.95
    all_pairs: bool = False
    corpus: str | None = None
    unit: Literal["document", "chunk"] | None = None


def score_options(output: str, arguments: Mapping[str, Any]) -> ScoreOptions:
    """Options by name, checked."""
    whole = {**arguments, **{name: _several(arguments[name]) for name in ("metrics", "dialects") if name in arguments}}
    if isinstance(whole.get("corpus"), os.PathLike):
        whole["corpus"] = os.fspath(whole["corpus"])
    try:
        valid = _Options.model_validate(whole).model_dump()
    except ValidationError as error:
        located = Located("score", whole, {}, ())
        problems = problems_of(located, _Options, error)
        raise InputErrors([InputError(problem.problem) for problem in problems]) from error
    return ScoreOptions(output, **{**valid, "dialects": ",".join(valid["dialects"])})


def _several(value: Any) -> Any:
    """One name or several, as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
