"""Read rows as objects: JSON lines, a JSON array (also in an object), CSV with a header, Parquet, Arrow, BigQuery."""

import csv
import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from rankbeam.transforms.clients.bigquery import read
from rankbeam.transforms.clients.bigquery.names import TableSource, is_table
from rankbeam.transforms.clients.formats.syntax import json_lines, lines, named_columns, tables
from rankbeam.transforms.clients.formats.syntax.spreadsheets import delimiter_in
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.clients.storage.parquet import MAGIC
from rankbeam.transforms.records.errors import InputError, shortened

Row = tuple[int, dict[str, Any]]  # the line (in Parquet, the row) from 1, and the object

_SPACE = " \t\r\n"
_BATCH_ROWS = 1_000
_LISTS = (
    ("results", "results"),
    ("results",),
    ("testRunData", "testCases"),
    ("testRunData", "conversationalTestCases"),
    ("test_results",),
    ("testCases",),
    ("test_cases",),
    ("eval_cases",),
    ("evalCases",),
    ("eval_case_results",),
    ("evalCaseResults",),
    ("samples",),
    ("examples",),
    ("data",),
    ("data", "examples"),
)  # keys that lead to the rows in files of other tools: promptfoo, DeepEval, ADK, OpenAI's API


class Shape(StrEnum):
    """The layout of a file."""

    LINES = "JSON lines"
    DOCUMENT = "JSON"
    CSV = "CSV"
    PARQUET = "Parquet"
    TABLE = "BigQuery"
    ARROW = "Arrow"


def state_of(path: str) -> object:
    """A value that differs if a file or table has changed."""
    if files.is_local(path) and Path(path).is_dir():
        raise InputError(
            "is a folder, and rows are read from one file; name a file in it, or write one of all rows", path=path
        )
    return read.describe(TableSource.parse(path)) if is_table(path) else matching.version(path)


def shape_of(path: str) -> Shape:
    if is_table(path):
        return Shape.TABLE
    magic = files.read_raw(path, 6)
    if magic.startswith(MAGIC):
        return Shape.PARQUET
    if magic.startswith(tables.ARROW):
        return Shape.ARROW
    head = files.read_head(path)
    lines.refuse_other_encoding(path, head, 0)
    text = head.decode("utf-8", "replace").lstrip(_SPACE)
    if not text:
        raise InputError("the file is empty; rows of questions and answers were expected", path=path)
    if text.startswith("["):
        return Shape.DOCUMENT
    _refuse_others(path, text)
    if not text.startswith("{"):
        return Shape.CSV
    first, end, rest = text.partition("\n")
    try:
        value = json.loads(first)
    except json.JSONDecodeError:
        return Shape.DOCUMENT if first.strip(_SPACE) == "{" or ('"' in first and end) else Shape.LINES
    except (ValueError, RecursionError):  # the number is too long, or the nesting too deep
        return Shape.LINES
    return Shape.DOCUMENT if not rest.strip() and _list_in(value) is not None else Shape.LINES


def _refuse_others(path: str, text: str) -> None:
    if text.startswith("<"):
        raise InputError("begins with '<', as HTML and XML do; rows of questions and answers were expected", path=path)
    if path.endswith((".yaml", ".yml")) and not text.startswith("{"):
        raise InputError("is YAML; write JSON instead, as promptfoo does with --output results.json", path=path)


def rows_in(path: str) -> Iterator[Row]:
    shape = shape_of(path)
    if shape in (Shape.TABLE, Shape.PARQUET, Shape.ARROW):
        yield from tables.numbered_rows(path, tables.batches(path, most_rows=_BATCH_ROWS))
    elif shape is Shape.CSV:
        yield from _in_csv(path)
    elif shape is Shape.DOCUMENT:
        yield from _in_document(path)
    else:
        for number, (line, text) in enumerate(json_lines.numbered_lines(path)):
            row = json_lines.parse_object(path, line, text)
            if number == 0:
                _refuse_columns(path, row)
            yield line, row


def list_place(path: str) -> tuple[str, ...]:
    value = json.loads(whole_text(path))
    return () if isinstance(value, list) else _list_in(value) or ()


def _refuse_columns(path: str, row: dict[str, Any]) -> None:
    """Refuse an object of columns, which pandas' `to_json()` and `to_dict()` of Hugging Face's datasets make."""
    columns = list(row.values())
    indexed = all(isinstance(column, dict) and list(column)[:1] == ["0"] for column in columns)
    listed = all(isinstance(column, list) for column in columns) and len({*map(len, columns)}) == 1
    if columns and (indexed or (listed and any(isinstance(cell, list) for column in columns for cell in column))):
        advice = "write rows, as to_json(path, orient='records', lines=True) does"
        raise InputError(f"holds one object of columns instead of rows; {advice}", path=path)


def _in_csv(path: str) -> Iterator[Row]:
    csv.field_size_limit(files.LONGEST_LINE)
    rows = csv.reader(_text_lines(path), strict=True, delimiter=delimiter_of(path))
    line = 1
    try:
        names = [name.strip() for name in next(rows, [])]
        if {"Status", "Named Scores", "Grader Reason"} <= {*names}:
            raise InputError(
                "is promptfoo's table; its rows lack parts of the cases: write --output results.json", path=path
            )
        named_columns.refuse_repeated(path, names, line=1)
        line = rows.line_num + 1
        for cells in rows:
            if cells and len(cells) != len(names):
                raise InputError(f"has {len(cells)} cells, and the header {len(names)}", path=path, line=line)
            if cells:
                yield line, {name: cell or None for name, cell in zip(names, cells, strict=True)}
            line = rows.line_num + 1
    except csv.Error as error:
        raise InputError(f"is not valid CSV: {error}", path=path, line=line) from error


def delimiter_of(path: str) -> str:
    return delimiter_in(files.read_head(path).decode("utf-8", "replace"))


def _text_lines(path: str) -> Iterator[str]:
    number = 0
    for block in files.read_blocks(path):
        lines.refuse_other_encoding(path, block, number)
        for line in block.splitlines(keepends=True):
            number += 1
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(lines.CONVERT, path=path, line=number) from error


def whole_text(path: str) -> str:
    return "".join(_text_lines(path))


def _in_document(path: str) -> Iterator[Row]:
    text = whole_text(path)
    value = json_lines.parse_document(path, text)
    place: tuple[str, ...] | None = ()
    if not isinstance(value, list):
        place = _list_in(value)
        if place == ("testRunData", "testCases") and value["testRunData"].get("conversationalTestCases"):
            raise InputError("has test cases and conversations of DeepEval; write a file for each kind", path=path)
        for key in place or ():
            value = value[key]
    if place is None:
        _refuse_columns(path, value)
        keys = shortened(", ".join(value), 200) if isinstance(value, dict) else type(value).__name__
        raise InputError(f"holds no list of rows that rankbeam knows; its keys: {keys}", path=path)
    begins = _begins(text, place)
    line, before = 1, 0
    for item, begin in zip(value, begins, strict=True):
        line, before = line + text.count("\n", before, begin), begin
        yield line, json_lines.as_object(path, line, item)


def _list_in(value: Any) -> tuple[str, ...] | None:
    """The keys that lead to the list of rows in an object, if possible not an empty one; None without a list."""
    empty = None
    for place in _LISTS:
        inner = value
        for key in place:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, list):
            if inner:
                return place
            empty = empty or place
    return empty


def _begins(text: str, place: tuple[str, ...]) -> Iterator[int]:
    """Positions at which the items of a list begin, in a valid JSON text."""
    decoder = json.JSONDecoder()
    at = _after_space(text, 0)
    for target in place:
        at = _value_of(text, at, target, decoder)
    at = _after_space(text, at + 1)
    while text[at] != "]":
        yield at
        _, end = decoder.raw_decode(text, at)
        at = _after_space(text, end)
        at = _after_space(text, at + 1) if text[at] == "," else at


def _value_of(text: str, at: int, target: str, decoder: json.JSONDecoder) -> int:
    """Position of the last value of an object's key: parsers keep that one."""
    result, at = at, _after_space(text, at + 1)
    while text[at] != "}":
        key, end = decoder.raw_decode(text, at)
        begin = _after_space(text, _after_space(text, end) + 1)
        result = begin if key == target else result
        _, end = decoder.raw_decode(text, begin)
        at = _after_space(text, end)
        at = _after_space(text, at + 1) if text[at] == "," else at
    return result


def _after_space(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
