"""`batch:` of a service: which calls are left to batch jobs, and what happens to calls that no job answers."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.records.calls.prompt import Prompt

ITEM = "item"
"""The field in which an answer repeats the item that identifies its request."""

_DURATION = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)([mhd])")
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86_400.0}


def _checked_duration(value: str) -> str:
    if (match := _DURATION.fullmatch(value)) is None or not float(match[1]):
        raise ValueError("write a number of minutes, hours or days, such as 90m, 26h or 2d")
    return value


class Batch(Parameters):
    """Settings of batch jobs.

    Attributes:
        min_calls: minimum number of calls of a step for a job; steps with fewer calls are made online.
        deadline: longest wait for a job, such as 90m, 26h or 2d; after it the job is cancelled, and the answers that it
            already has are used.
        otherwise: treatment of calls that a job did not answer: "online" makes them one by one, at full price; "fail"
            counts them as failed.
        answers: if true, jobs also make calls whose answers have no schema (answers of `generate`, embeddings). Only
            the service's own key then shows which request an answer belongs to.
        staging: folder in Cloud Storage for the files of jobs, such as gs://BUCKET/FOLDER; only for Vertex AI, which
            requires it.
    """

    min_calls: Annotated[int, Field(ge=1)] = 200
    deadline: Annotated[str, AfterValidator(_checked_duration)] = "26h"
    otherwise: Literal["online", "fail"] = "online"
    answers: bool = False
    staging: Annotated[str, Field(pattern=r"^gs://[^/]+(/.*)?$")] | None = None

    @property
    def deadline_s(self) -> float:
        """The longest wait, in seconds.

        >>> Batch(deadline="90m").deadline_s, Batch().deadline_s
        (5400.0, 93600.0)
        """
        match = _DURATION.fullmatch(self.deadline)
        assert match is not None  # noqa: S101  it was validated
        return float(match[1]) * _SECONDS[match[2]]


def can_prove(prompt: Prompt) -> bool:
    """Return whether an answer can repeat its request's item, because it is an object with fields."""
    properties = (prompt.schema or {}).get("properties")
    return isinstance(properties, Mapping) and ITEM not in properties


def with_item(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add the field for the item to a schema; the result is the same for all requests of a step.

    >>> with_item({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})["required"]
    ['item', 'a']
    """
    properties = {ITEM: {"type": "string"}, **schema["properties"]}
    return {**schema, "properties": properties, "required": [ITEM, *schema.get("required", ())]}
