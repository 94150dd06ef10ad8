"""Optional parts of requests that a service refuses: learned from its refusals, and left out from then on.

A content key never depends on them: it holds the configured values, whatever of a request a service takes.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

BOUNDS = ("minimum", "maximum", "minItems", "maxItems")
"""Keywords of JSON schemas that some services refuse; every answer is checked for them in any case."""

_NO = (
    r"unsupported|not (?:be )?(?:supported|permitted|allowed|enabled|accepted|available)|not support|only the default|"
    r"unknown|unrecogni[sz]ed|unexpected|extra inputs|deprecated|too many states"
)


class RequestPart(StrEnum):
    """A part of a request that some services refuse, in the order in which refusals are read."""

    LIMIT = "limit"
    TEMPERATURE = "temperature"
    SEED = "seed"
    BOUNDS = "bounds"
    SCHEMA = "schema"
    JSON = "json"


def _near(names: str) -> re.Pattern[str]:
    """Matches one of some names beside words of a refusal: an error may quote the whole request."""
    name = rf"(?<![A-Za-z]){names}(?![A-Za-z])"
    return re.compile(rf"{name}.{{0,160}}?(?:{_NO})|(?:{_NO}).{{0,160}}?{name}", re.IGNORECASE | re.DOTALL)


_FORM = re.compile(
    r"response_?format|response_?schema|response_?mime_?type|json_?schema|json mode|structured|guided|grammar|"
    r"too many states",
    re.IGNORECASE,
)
_REFUSED: Mapping[RequestPart, re.Pattern[str]] = {
    RequestPart.LIMIT: _near("(?:max_tokens|max_completion_tokens)"),
    RequestPart.TEMPERATURE: _near("temperature"),
    RequestPart.SEED: _near("seed"),
    RequestPart.BOUNDS: _near(f"(?:{'|'.join(BOUNDS)}|min_items|max_items|item limits|too many states)"),
    RequestPart.SCHEMA: _FORM,
    RequestPart.JSON: _FORM,
}
_WARNINGS: Mapping[RequestPart, str] = {
    RequestPart.LIMIT: "refuses the name of the token limit: requests use the other one of max_tokens and "
    "max_completion_tokens",
    RequestPart.TEMPERATURE: "refuses temperature: it is left out of requests, and the model's own value applies",
    RequestPart.SEED: "refuses seed: it is left out of requests, so answers may vary more",
    RequestPart.BOUNDS: f"refuses {', '.join(BOUNDS)} in JSON schemas: they are left out of requests; answers are "
    "checked as before",
    RequestPart.SCHEMA: "refuses JSON schemas: requests ask for a JSON object, with the schema in the prompt; "
    "answers are checked as before",
    RequestPart.JSON: "refuses requests for a JSON object: only the prompt asks for one; answers are checked as before",
}


@dataclass
class Refusals:
    """Parameters that a service refuses, learned by a connection; each call in flight learns it by one attempt more."""

    service: str
    warnings: list[str]
    parts: frozenset[RequestPart] = field(default=frozenset())

    def learn(self, message: str, sent: Collection[RequestPart]) -> bool:
        """Note what a refusal is about; returns whether the next request differs from the refused one."""
        part = next((part for part in RequestPart if part in sent and _REFUSED[part].search(message)), None)
        if part is None:
            return False
        if part not in self.parts:
            self.parts |= {part}
            self.warnings.append(f"{self.service} {_WARNINGS[part]}")
        return True


def without_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema without `BOUNDS`.

    >>> without_bounds({"type": "array", "maxItems": 2, "items": {"type": "integer", "minimum": 0}})
    {'type': 'array', 'items': {'type': 'integer'}}
    """
    relaxed = {name: value for name, value in schema.items() if name not in BOUNDS}
    if "items" in relaxed:
        relaxed["items"] = without_bounds(relaxed["items"])
    if "properties" in relaxed:
        relaxed["properties"] = {name: without_bounds(child) for name, child in relaxed["properties"].items()}
    return relaxed
