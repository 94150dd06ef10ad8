"""Cases in the roles of a dataset's files: queries, judgements, and answers of one system."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from rankbeam.transforms.clients.formats.cases.read import Case, read_cases
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.lines import repeated_at
from rankbeam.transforms.kernels import hashing
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.suggestions import shortened
from rankbeam.transforms.records.trajectories import EXPECTED_STEPS, as_json, rows_of

REFERENCE = "reference"
"""The attribute of queries that holds the reference answer."""
_BATCH_ROWS = 1_000


def queries_in(source: CaseSource) -> Iterator[Case]:
    """The cases of a file, each query once: several systems may have answered it."""
    first: dict[int, tuple[int, int]] = {}
    for case in read_cases(source):
        if not case.question:
            raise InputError("has no question", path=source.path, line=case.line)
        content = f"{case.question}\n{case.reference or ''}"
        name, content = hashing.hash_strings(pa.array([case.query_id, content])).tolist()
        known, line = first.setdefault(name, (content, case.line))
        if line == case.line:
            yield case
        elif known != content:
            problem = f"query {shortened(repr(case.query_id))} has two questions or two reference answers"
            raise repeated_at(problem, [(source.path, line), (source.path, case.line)], "keep one")


def read_queries(source: CaseSource) -> Iterator[tuple[str, str, Mapping[str, str], int]]:
    """Id, text, attributes and line of every query; the reference answer is an attribute."""
    for case in queries_in(source):
        gold = {} if case.reference is None else {REFERENCE: case.reference}
        if case.expected_steps is not None:
            gold[EXPECTED_STEPS] = json.dumps(as_json(case.expected_steps), ensure_ascii=False)
        yield case.query_id, case.question, {**case.attributes, **gold}, case.line


def read_qrels(source: CaseSource) -> Iterator[pa.RecordBatch]:
    """Read judgements: the relevant documents of every query, with grade 1."""
    rows = (
        {"query_id": case.query_id, "doc_id": doc_id, "grade": 1.0, "line": case.line}
        for case in queries_in(source)
        for doc_id in case.relevant or ()
    )
    yield from _batches(rows, columns.QRELS)


def read_replayed(source: CaseSource, config: str | None) -> Iterator[pa.RecordBatch]:
    """Read answers as `columns.REPLAYED`; the answer is null where a row has none."""
    rows = (_replayed(case) for case in read_cases(source) if config is None or case.config == config)
    yield from _batches(rows, columns.REPLAYED)


def _replayed(case: Case) -> dict[str, Any]:
    contexts = None if case.contexts is None else [{"doc_id": name, "text": text} for name, text in case.contexts]
    known = {"query_id": case.query_id, "answer": case.answer, "contexts": contexts, "line": case.line}
    return {**known, "steps": rows_of(case.steps)}


def _batches(rows: Iterable[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = iter(rows)
    while part := list(islice(rows, _BATCH_ROWS)):
        yield pa.RecordBatch.from_pylist(part, schema=columns.with_line(schema))
