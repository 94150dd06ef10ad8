"""Answers that exist already: JSON lines, each with what one system answered to one query, and from which contexts."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, field_validator

from rankbeam.transforms.clients.formats import json_lines, sources
from rankbeam.transforms.clients.formats.places import repeated_at
from rankbeam.transforms.clients.formats.values import as_text, json_id
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.suggestions import shortened

_BATCH_ROWS = 1_000


class _Context(BaseModel):
    """One context; further keys are the user's own."""

    model_config = ConfigDict(strict=True)

    doc_id: Any = None
    text: str


class _Answer(BaseModel):
    """One line; further keys are the user's own."""

    model_config = ConfigDict(strict=True)

    query_id: Any
    answer: str
    contexts: list[_Context] | None = None
    config: Any = None

    @field_validator("answer")
    @classmethod
    def _says_something(cls, answer: str) -> str:
        if not answer.strip():
            raise ValueError("is empty; leave out the line of a query without an answer, which then counts as failed")
        return answer


@dataclass(frozen=True)
class ReplayReader:
    """Reads the answers of one system: JSON lines {query_id, answer, contexts?: [{doc_id?, text}], config?}."""

    config: str | None  # only lines with this `config`; None for all

    def __call__(self, path: str) -> Iterator[pa.RecordBatch]:
        """Read one file."""
        lines = ((line, json_lines.validated(path, line, text, _Answer)) for line, text in json_lines.numbered(path))
        rows = (_row(path, line, given) for line, given in lines if self._wants(given))
        while part := list(islice(rows, _BATCH_ROWS)):
            yield pa.RecordBatch.from_pylist(part, schema=columns.with_line(columns.REPLAYED))

    def _wants(self, given: _Answer) -> bool:
        return self.config is None or as_text(given.config) == self.config


class ReplayConflict(Exception):
    """A query that one system has answered twice; the lines are looked up again."""

    def __init__(self, query_id: str) -> None:
        super().__init__(query_id)
        self.query_id = query_id

    def located(self, pattern: str, config: str | None) -> Exception:
        """The error to report."""
        places = [
            (path, line)
            for path in sources.expand(pattern)
            for batch in ReplayReader(config)(path)
            for line in batch["line"].filter(pc.equal(batch["query_id"], self.query_id)).to_pylist()
        ]
        several = (
            "" if config is not None else ", or, where they are of several systems, say which: answers: {config: …}"
        )
        return repeated_at(f"query {shortened(repr(self.query_id))} has two answers", places, f"keep one{several}")


def configs_until(pattern: str, wanted: str) -> set[str]:
    """The values of `config` in some files, which are read until the one that is wanted was seen."""
    seen = set[str]()
    for path in sources.expand(pattern):
        for line, text in json_lines.numbered(path):
            seen.add(as_text(json_lines.validated(path, line, text, _Answer).config))
            if wanted in seen:
                return seen
    return seen - {""}


def _row(path: str, line: int, given: _Answer) -> dict[str, Any]:
    contexts = given.contexts
    return {
        "query_id": json_id(path, line, given.query_id),
        "answer": given.answer,
        "contexts": None if contexts is None else [_context(path, line, context) for context in contexts],
        "line": line,
    }


def _context(path: str, line: int, given: _Context) -> dict[str, str | None]:
    doc_id = None if given.doc_id in (None, "") else json_id(path, line, given.doc_id)
    return {"doc_id": doc_id, "text": given.text}
