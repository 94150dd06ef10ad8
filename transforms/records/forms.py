"""Answers of models that are JSON of a form: the schemas that are sent, and strict reading of replies."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rankbeam.transforms.records.errors import CallError, FailureKind


class Form(BaseModel):
    """A form without further keys, whose values have exactly their types."""

    model_config = ConfigDict(extra="forbid", strict=True)


Text = Annotated[str, Field(min_length=1, pattern=r"\S")]  # a text that is not blank

TEXT: dict[str, Any] = {"type": "string"}  # the schema of a text

_ANNOTATIONS = frozenset({"title", "description", "default"})

F = TypeVar("F", bound=Form)


def parse_form(form: type[F], answer: str) -> F:
    text = without_fence(answer)
    try:
        value = form.model_validate_json(text, strict=True)
        json.loads(text, object_pairs_hook=_distinct)  # pydantic takes the last of equal keys
        return value
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise malformed(f"{place}: {first['msg']}" if place else first["msg"]) from error
    except (ValueError, RecursionError) as error:
        raise malformed(str(error)) from error


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    keys = Counter(key for key, _ in pairs)
    if len(keys) < len(pairs):
        raise malformed(f"the key {keys.most_common(1)[0][0]!r} occurs twice in one object")


def without_fence(answer: str) -> str:
    """The JSON of an answer that has a code fence around it, with prose beside the fence."""
    fenced = re.match(r"[^{]*?```(?:json)?\s*(\{.*\})\s*```", answer, re.DOTALL | re.IGNORECASE)
    return fenced[1] if fenced else answer


def malformed(message: str) -> CallError:
    """The error of an answer that breaks a rule; a repair quotes it."""
    return CallError(FailureKind.MALFORMED, f"the answer breaks its schema: {message}")


def object_of(**properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object whose properties are all required, in their order."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def list_of(items: dict[str, Any], count: int | None = None) -> dict[str, Any]:
    """The schema of a list, with this number of items if it is known."""
    bounds = {} if count is None else {"minItems": count, "maxItems": count}
    return {"type": "array", "items": items, **bounds}


def whole(low: int, high: int) -> dict[str, Any]:
    """The schema of a whole number."""
    return {"type": "integer", "minimum": low, "maximum": high}


@cache
def schema_of(form: type[Form], left_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The schema of a form without some keywords, with nested forms inlined; every property is required.

    >>> class Reply(Form):
    ...     reason: str
    ...     grade: Annotated[int, Field(ge=1, le=5)]
    >>> schema_of(Reply) == object_of(reason=TEXT, grade=whole(1, 5))
    True
    """
    whole_schema = form.model_json_schema()
    definitions = whole_schema.pop("$defs", {})
    schema: dict[str, Any] = _in_place(whole_schema, definitions, _ANNOTATIONS | left_out)
    return schema


def _in_place(node: Any, definitions: Mapping[str, Any], left_out: frozenset[str]) -> Any:
    if isinstance(node, list):
        return [_in_place(child, definitions, left_out) for child in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _in_place(definitions[node["$ref"].rpartition("/")[2]], definitions, left_out)
    if node.get("type") == "object" and "properties" in node:
        properties = node["properties"].items()
        return object_of(**{name: _in_place(child, definitions, left_out) for name, child in properties})
    return {name: _in_place(child, definitions, left_out) for name, child in node.items() if name not in left_out}
