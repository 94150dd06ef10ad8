"""Lines of text files with their numbers, and the JSON values in them."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
from pydantic import BaseModel, ValidationError

from rankbeam.transforms.clients.formats.syntax import lines, named_columns
from rankbeam.transforms.clients.formats.syntax.ids import json_id
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.storage.json_paths import value_of
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.errors import InputError, shortened
from rankbeam.transforms.records.wrong_values import in_one, in_words, without_types

_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # the escape of a surrogate
_PAIR = re.compile(r"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]")  # two of them, or an escaped backslash

Model = TypeVar("Model", bound=BaseModel)


def numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """Every line of a file that is not blank, with its number from 1."""
    number = 0
    for block in files.read_blocks(path):
        lines.refuse_other_encoding(path, block, number)
        for line in block.split(b"\n")[: None if not block.endswith(b"\n") else -1]:
            number += 1
            if not line.strip():
                continue
            try:
                yield number, line.decode("utf-8").rstrip("\r")
            except UnicodeDecodeError as error:
                raise InputError(lines.CONVERT, path=path, line=number) from error


def parse_line(path: str, line: int, text: str) -> Any:
    try:
        return value_of(text)
    except json.JSONDecodeError as error:
        advice = "; write one object per line, and end lines with LF" if error.msg == "Extra data" else ""
        problem = f"is not valid JSON: {error.msg} at column {error.colno}{advice}"
        raise InputError(problem, path=path, line=line) from error
    except (ValueError, RecursionError) as error:
        raise _unreadable(error, path, line) from error


def parse_document(path: str, text: str) -> Any:
    """The JSON value of a whole file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        several = "; write each object on a line of its own, as jq -c . does" if error.msg == "Extra data" else ""
        problem = f"is not valid JSON: {error.msg} at column {error.colno}{several}"
        raise InputError(problem, path=path, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise _unreadable(error, path) from error


def _unreadable(error: Exception, path: str, line: int | None = None) -> InputError:
    """An error for JSON that is valid, but that Python cannot read."""
    most = f"it holds a number of more than {sys.get_int_max_str_digits():,} digits"  # Python's limit
    problem = "it is nested too deeply" if isinstance(error, RecursionError) else most
    return InputError(f"is not valid JSON: {problem}", path=path, line=line)


def parsed_lines(path: str, model: type[Model]) -> Iterator[tuple[int, Model]]:
    """The objects in the lines of a file, each with its number."""
    for line, text in numbered_lines(path):
        yield line, validate_model(path, line, parse_whole_object(path, line, text), model)


def parse_whole_object(path: str, line: int, text: str) -> dict[str, Any]:
    """An object without lone surrogates; in UTF-8 text, only an escape can write one."""
    value = parse_object(path, line, text)
    if _HALF.search(text) and _HALF.search(_PAIR.sub(" ", text)):
        raise InputError("holds half a character (a lone surrogate such as \\ud83d)", path=path, line=line)
    return value


def parse_object(path: str, line: int, text: str) -> dict[str, Any]:
    return as_object(path, line, parse_line(path, line, text))


def as_object(path: str, line: int, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"expected a JSON object, found {type(value).__name__}", path=path, line=line)
    return value


def validate_model(path: str, line: int, value: dict[str, Any], model: type[Model]) -> Model:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = in_one(error.errors())[0]
        place, problem = ".".join(map(str, without_types(first["loc"]))), in_words(first)
        raise InputError(f"{place}: {problem}" if place else problem, path=path, line=line) from error


def read(path: str, role: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read judgements or a run with one object in each line, with names in common use as keys."""
    return in_batches(_rows(path, role, schema.names[2]), schema, 1 << 16)


def _rows(path: str, role: str, number: str) -> Iterator[dict[str, Any]]:
    names: dict[str, str] = {}
    for line, text in numbered_lines(path):
        row = parse_whole_object(path, line, text)
        names = names or named_columns.find_columns(path, list(row), role)
        value = row.get(names[number])
        if isinstance(value, bool) or not isinstance(value, int | float):
            written = shortened(json.dumps(value, ensure_ascii=False))
            raise InputError(f"the {number} {written} is not a number", path=path, line=line)
        pair = {name: json_id(path, line, row.get(names[name])) for name in ("query_id", "doc_id")}
        yield {**pair, number: float(str(value)), "line": line}  # too large an integer becomes infinite: refused


def in_batches(rows: Iterable[dict[str, Any]], schema: pa.Schema, at_once: int = 1_000) -> Iterator[pa.RecordBatch]:
    rows = iter(rows)
    while part := list(islice(rows, at_once)):
        yield pa.RecordBatch.from_pylist(part, schema=columns.with_line(schema))
