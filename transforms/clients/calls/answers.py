"""Answers of a known form: checked when a service gives them, kept as JSON, and checked again when they are read."""

from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

T = TypeVar("T")


def checked(form: TypeAdapter[T], found: Any) -> T:
    """What a service said, once it is known to look as it should.

    Args:
        form: what it must look like.
        found: Python values.

    Raises:
        CallError: it does not (`MALFORMED`).
    """
    try:
        return form.validate_python(found)
    except ValidationError as error:
        raise _malformed(error) from error


def written(form: TypeAdapter[T], found: Any) -> str:
    """An answer, `checked`, as the ledger keeps it: compact JSON."""
    return form.dump_json(checked(form, found)).decode()


def parsed(form: TypeAdapter[T], answer: str) -> T:
    """What `written` wrote, checked again: the ledger may be somebody else's.

    Raises:
        CallError: it does not look as it should (`MALFORMED`).
    """
    try:
        return form.validate_json(answer)
    except ValidationError as error:
        raise _malformed(error) from error


def _malformed(error: ValidationError) -> CallError:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"])) or "its start"
    return CallError(FailureKind.MALFORMED, f"the answer is malformed at {place}: {first['msg']}")
