"""Answers of a known form: validated when they arrive, stored as JSON, and validated again when they are read."""

from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.wrong_values import in_words

T = TypeVar("T")


def validate_reply(form: TypeAdapter[T], reply: Any) -> T:
    try:
        return form.validate_python(reply)
    except ValidationError as error:
        raise _malformed(error) from error


def encode_answer(form: TypeAdapter[T], reply: Any) -> str:
    """The answer that the ledger stores: the validated reply, as compact JSON."""
    return form.dump_json(validate_reply(form, reply)).decode()


def parse_answer(form: TypeAdapter[T], answer: str) -> T:
    """Parse the result of `encode_answer` and validate it again: another program may have edited the ledger."""
    try:
        return form.validate_json(answer)
    except ValidationError as error:
        raise _malformed(error) from error


def _malformed(error: ValidationError) -> CallError:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"])) or "its start"
    return CallError(FailureKind.MALFORMED, f"the answer is malformed at {place}: {in_words(first)}")
