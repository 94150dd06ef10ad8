"""Answers that exist already: JSON lines, each with one system's answer to one query, and the contexts behind it.

Files of other tools, and CSV, JSON and Parquet files, are read as cases.
"""

import sys
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.formats.cases import roles
from rankbeam.transforms.clients.formats.cases.objects import Shape, shape_of
from rankbeam.transforms.clients.formats.cases.read import read_cases
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.cases.tools import COMMON, OWN, tool_of
from rankbeam.transforms.clients.formats.syntax import json_lines
from rankbeam.transforms.clients.formats.syntax.ids import as_text, checked_id, json_id
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.reply import Tokens
from rankbeam.transforms.records.trajectories import AgentSteps, has_steps, rows_of, steps_in

_TOKENS = ("input", "cached", "output")
_FOREIGN = {"question", "query", "input", "prompt"}
"""Keys for the question in other tools' rows; rankbeam's own lines name the query by `query_id`."""


class _Context(BaseModel):
    """One context; other keys are ignored."""

    model_config = ConfigDict(strict=True)

    doc_id: Any = None
    text: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_text(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _says_something(self) -> "_Context":
        if self.text is None and self.doc_id in (None, ""):
            raise ValueError("has neither text nor doc_id")
        return self


class _Answer(BaseModel):
    """One line; other keys are ignored."""

    model_config = ConfigDict(strict=True)

    query_id: Any
    answer: str
    contexts: list[_Context] | None = None
    config: Any = None
    steps: Any = None
    tokens: Any = None
    seconds: Any = None

    @field_validator("answer")
    @classmethod
    def _says_something(cls, answer: str) -> str:
        if not answer.strip():
            raise ValueError("is empty; if a query has no answer, leave out its line; the query then counts as failed")
        return answer

    @field_validator("steps")
    @classmethod
    def _are_steps(cls, value: Any) -> AgentSteps | None:
        return steps_in(value) if has_steps(value) else None  # anything else is ignored


@dataclass(frozen=True)
class ReplayReader:
    """Reads the answers of some systems, or cases.

    Lines are {query_id, answer, contexts?: [{doc_id?, text?}], config?, steps?: [{tool, args, status?, doc_ids?}],
    tokens?: {input, output, cached?}, seconds?}.
    """

    configs: Set[str] | None  # only lines with one of these in `config`; None for all
    columns: Mapping[str, str] = field(default_factory=dict)  # the user's paths for parts of cases

    def __call__(self, path: str) -> Iterator[pa.RecordBatch]:
        if not self.columns and is_own(path):
            yield from self._own_rows(path)
        else:
            yield from roles.read_replayed(CaseSource(path, self.columns, flatten=True), self.configs)

    def configs_in(self, path: str) -> Iterator[str]:
        if not self.columns and is_own(path):
            yield from (as_text(row.config) for _, row in json_lines.parsed_lines(path, _Answer))
        else:
            yield from (case.config for case in read_cases(CaseSource(path, self.columns, flatten=True)))

    def _own_rows(self, path: str) -> Iterator[pa.RecordBatch]:
        rows = (
            _row(path, line, row)
            for line, row in json_lines.parsed_lines(path, _Answer)
            if self.configs is None or as_text(row.config) in self.configs
        )
        yield from json_lines.in_batches(rows, columns.REPLAYED)


def is_own(path: str) -> bool:
    """Return whether a file has rankbeam's own lines, judging by the keys of its first line."""
    if shape_of(path) is not Shape.LINES:
        return False
    line, text = next(json_lines.numbered_lines(path))
    value = json_lines.parse_line(path, line, text)
    return not isinstance(value, dict) or (tool_of(value).name in (OWN, COMMON.name) and not _FOREIGN & value.keys())


def configs_until(pattern: str, targets: Set[str], reader: ReplayReader) -> set[str]:
    """The values of `config` in some files, which are only read until all targets have occurred."""
    seen = set[str]()
    for path in sources.expand(pattern):
        for config in reader.configs_in(path):
            if config not in seen:
                seen.add(config)
                if targets <= seen:
                    return seen
    return seen - {""}


def _row(path: str, line: int, stated: _Answer) -> dict[str, Any]:
    contexts, seconds = stated.contexts, stated.seconds
    is_duration = type(seconds) in (int, float) and 0 <= seconds <= sys.float_info.max
    return {
        "query_id": json_id(path, line, stated.query_id),
        "answer": stated.answer,
        "contexts": None if contexts is None else [_context(path, line, context) for context in contexts],
        "line": line,
        "steps": _step_rows(path, line, stated.steps),
        "seconds": float(seconds) if is_duration else None,
        "config": as_text(stated.config),
        **_tokens(stated.tokens),
    }


def _step_rows(path: str, line: int, steps: AgentSteps | None) -> list[dict[str, Any]] | None:
    for step in steps or ():
        for doc_id in step.doc_ids or ():
            checked_id(path, line, doc_id)
    return rows_of(steps)


def _tokens(stated: Any) -> dict[str, int]:
    """The tokens that a line states; values of any other form are ignored."""
    counts = {name: stated.get(name) or 0 for name in _TOKENS} if isinstance(stated, dict) else {}
    is_known = all(type(count) is int for count in counts.values()) and Tokens(**counts).is_possible
    return {f"{name}_tokens": count for name, count in counts.items()} if is_known else {}


def _context(path: str, line: int, stated: _Context) -> dict[str, Any]:
    doc_id = None if stated.doc_id in (None, "") else json_id(path, line, stated.doc_id)
    return {"doc_id": doc_id, "text": stated.text}
