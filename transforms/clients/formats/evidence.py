"""Evidence spans {query_id, doc_id, start, end, quote, group?, grade?}, checked against the corpus.

Spans are JSON lines, or rows of a Parquet file or BigQuery table with columns of these names.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from rankbeam.transforms.clients.formats import sources, texts
from rankbeam.transforms.clients.formats.recognise import Format, recognise
from rankbeam.transforms.clients.formats.sources import shown
from rankbeam.transforms.clients.formats.syntax import json_lines, tables
from rankbeam.transforms.clients.formats.syntax.ids import json_id
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.errors import InputError, pluralize, shortened
from rankbeam.transforms.records.rankings.spans import evidence_id

ROLE = "evidence"
_MOST = 10**10 - 1
_MOST_SHOWN = 60


class _Evidence(BaseModel):
    """One line; other keys are ignored."""

    model_config = ConfigDict(strict=True)

    query_id: Any
    doc_id: Any
    start: Annotated[int, Field(ge=0, le=_MOST)]
    end: Annotated[int, Field(ge=1, le=_MOST)]
    quote: str
    group: Annotated[str, Field(pattern=r"^[^#]+$")] | None = None
    grade: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 1.0

    @model_validator(mode="after")
    def _is_a_span(self) -> "_Evidence":
        if self.start >= self.end:
            raise ValueError(f"the span [{self.start}, {self.end}) is empty; end is the position behind the last one")
        if len(self.quote) != self.end - self.start:
            problem = f"the quote has {len(self.quote):,} characters, the span {self.end - self.start:,}"
            raise ValueError(f"{problem}; both are numbers of code points of the document's text")
        return self


def read_evidence(path: str) -> Iterator[pa.RecordBatch]:
    """Read evidence as judgements of spans."""
    rows = (
        {
            "query_id": evidence.query_id,
            "doc_id": evidence_id(evidence.doc_id, evidence.start, evidence.end, evidence.group),
            "grade": evidence.grade,
            "line": line,
        }
        for line, evidence in _lines(path)
    )
    yield from json_lines.in_batches(rows, columns.QRELS)


def refuse_misquoted(pattern: str, corpus: str) -> None:
    """Compare every quote with the text of its document."""
    by_document = grouped(
        (evidence.doc_id, (path, line, evidence)) for path in sources.expand(pattern) for line, evidence in _lines(path)
    )
    problems = {}
    for _, entry in texts.entries_in(corpus, "corpus"):
        for place, line, evidence in by_document.pop(entry.id, ()):
            if (there := entry.text[evidence.start : evidence.end]) != evidence.quote:
                problems[place, line] = _misquote_problem(evidence, there, _nearest(evidence, entry.text))
    for doc_id, entries in by_document.items():
        for place, line, _ in entries:
            problems[place, line] = f"document {shortened(repr(doc_id))} is not in the corpus {shown(corpus)}"
    if problems:
        (place, line), more = min(problems), len(problems) - 1
        also = f" ({pluralize(more, 'more such line follows', 'more such lines follow')})" if more else ""
        raise InputError(problems[place, line] + also, path=shown(place), line=line)


def _nearest(evidence: _Evidence, text: str) -> int:
    """The quote's position in the text nearest to the span; -1 if the text does not contain the quote."""
    places = (text.rfind(evidence.quote, 0, evidence.end), text.find(evidence.quote, evidence.start))
    return min((place for place in places if place >= 0), key=lambda place: abs(place - evidence.start), default=-1)


def _misquote_problem(evidence: _Evidence, there: str, position: int) -> str:
    quote, text = (shortened(repr(words), _MOST_SHOWN) for words in (evidence.quote, there))
    problem = f"text[{evidence.start}:{evidence.end}] of document {evidence.doc_id!r} is {text}, not the quote {quote}"
    advice = "; spans count code points of the text as the corpus has it, without the title"
    return problem + (f"; the quote begins at {position}" if position >= 0 else advice)


def _lines(path: str) -> Iterator[tuple[int, _Evidence]]:
    for line, evidence in _entries(path):
        ids = {name: json_id(shown(path), line, getattr(evidence, name)) for name in ("query_id", "doc_id")}
        yield line, evidence.model_copy(update=ids)


def _entries(path: str) -> Iterator[tuple[int, _Evidence]]:
    form = recognise(path, ROLE)
    if form is Format.JSON_LINES:
        yield from json_lines.parsed_lines(path, _Evidence)
        return
    for names, batches in tables.named_batches(path, ROLE):
        for row, values in tables.numbered_rows(path, batches):
            known = {ours: values[theirs] for ours, theirs in names.items() if values[theirs] is not None}
            yield row, json_lines.validate_model(shown(path), row, known, _Evidence)
