"""Readers of judgements and runs: millions of short rows, read by column; and JSON of query to document to number."""

import json
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.formats import pieces
from rankbeam.transforms.clients.formats.cases import roles
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.recognise import TABLES, Format, recognise
from rankbeam.transforms.clients.formats.sources import shown
from rankbeam.transforms.clients.formats.syntax import delimited, ids, json_lines, lines, tables
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.workers import read_ahead
from rankbeam.transforms.kernels import hashing, text
from rankbeam.transforms.kernels.arrays import BoolArray
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.errors import InputError, pluralize, shortened

_NESTED_ROWS = 1 << 16
_NUMBER = 2  # position of the grade or score
_Pairs = list[tuple[str, Any]]
_JUDGE_LINES = {
    Format.SOURCED_QRELS: re.compile(rb"^(?:[^\t\n]*\t){3}[ ]*llm[ ]*\r?$", re.MULTILINE | re.IGNORECASE),
    Format.TREC_QRELS: re.compile(rb"^[ \t]*\S+[ \t]+llm[ \t]", re.MULTILINE | re.IGNORECASE),
}  # patterns by format for lines of a judge, whose source (BEIR's fourth, TREC's second column) is `llm`


_SCHEMAS = {"qrels": columns.QRELS, "subtopic_qrels": columns.SUBTOPIC_QRELS, "run": columns.RUN}
_LAYOUTS = {
    Format.TREC_RUN: text.LineLayout((0, 2, 4), at_least=5, at_most=100, rank=3),
    Format.MS_MARCO_RUN: text.LineLayout((0, 1, 2), at_least=3, at_most=3, tabs=True),
    Format.TREC_QRELS: text.LineLayout((0, 2, 3), at_least=4, at_most=4),
    Format.BEIR_QRELS: text.LineLayout((0, 1, 2), at_least=3, at_most=3, tabs=True),
    Format.SOURCED_QRELS: text.LineLayout((0, 1, 2), at_least=4, at_most=4, tabs=True),
}
_SUBTOPIC_LAYOUT = text.LineLayout((0, 2, 3), at_least=4, at_most=4, subtopic=1)
_SCORES = "a run of three columns has ranks; scores need TREC's six"
_WITH_SUBTOPICS = (Format.TREC_QRELS, Format.SEPARATED, *TABLES)


def read_qrels(path: str, part: range | None = None) -> Iterator[pa.RecordBatch]:
    """Read judgements: TREC, BEIR, CSV, JSON lines, ranx' JSON, Parquet or a BigQuery table; a thread reads ahead."""
    return read_ahead(_read_batches(path, "qrels", recognise(path, "qrels"), part))


def read_subtopic_qrels(path: str) -> Iterator[pa.RecordBatch]:
    """Read judgements by subtopic: TREC's second column, or a column of CSV, Parquet or a table of BigQuery."""
    form = recognise(path, "qrels")
    if form not in _WITH_SUBTOPICS:
        problem = f"holds {form} without subtopics; metrics of subtopics need TREC's four columns"
        raise InputError(f"{problem} (query subtopic document grade), or a column named subtopic", path=shown(path))
    return read_ahead(_read_batches(path, "subtopic_qrels", form))


def read_run(path: str, part: range | None = None) -> Iterator[pa.RecordBatch]:
    """Read a run: TREC, MS MARCO, CSV, JSON lines, ranx' JSON, Parquet or a table of BigQuery; a thread reads ahead."""
    return read_ahead(_read_batches(path, "run", recognise(path, "run"), part))


def run_tag(path: str) -> str | None:
    """The tag in a TREC run's sixth column, from its first line; None for other formats or without a tag."""
    if recognise(path, "run") is not Format.TREC_RUN:
        return None
    fields = text.split_blanks(files.read_head(path), [5])
    tag = fields.columns[0][:1]
    lines.refuse_not_utf8(path, pa.array(fields.line[:1] + 1), tag)
    return next(iter(tag.to_pylist()), None) or None


def _read_batches(path: str, role: str, form: Format, part: range | None = None) -> Iterator[pa.RecordBatch]:
    plain_schema = _SCHEMAS[role]
    schema = columns.with_line(plain_schema)
    if form is Format.CASES:
        yield from roles.read_qrels(CaseSource.parse(path))
    elif form in TABLES:
        yield from _refuse_infinite(path, tables.read_rows(path, role, schema, part))
    elif form is Format.NESTED:
        yield from _refuse_infinite(path, read_nested(path, plain_schema))
    elif form is Format.JSON_ROWS:
        yield from _refuse_infinite(path, json_lines.read(path, role, plain_schema))
    elif form is Format.SEPARATED:
        yield from _refuse_infinite(path, delimited.read(path, role, schema))
    else:
        layout = _SUBTOPIC_LAYOUT if role == "subtopic_qrels" else _LAYOUTS[form]
        blocks = files.read_blocks(path) if part is None else pieces.read_blocks(path, part.start, part.stop)
        batches = _read_text(path, layout, schema, blocks, is_begin=part is None or part.start == 0)
        yield from _scored_by_rank(path, batches) if form is Format.MS_MARCO_RUN else batches


def _scored_by_rank(path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn ranks from 1 into scores: the negative ranks."""
    for batch in batches:
        ranks = batch["score"].to_numpy()
        advice = f"the rank is not a whole number from 1; {_SCORES}"
        _refuse(path, batch["line"], (ranks < 1) | (ranks != np.floor(ranks)), advice)
        pairs = hashing.combine(hashing.hash_strings(batch["query_id"]), ranks.astype(np.uint64))
        repeated = np.ones(len(pairs), bool)
        repeated[np.unique(pairs, return_index=True)[1]] = False
        _refuse(path, batch["line"], repeated, f"another document of its query has the same rank; {_SCORES}")
        yield batch.set_column(2, batch.schema.field("score"), pa.array(-ranks))


def _refuse_infinite(path: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        number = batch.schema.names[_NUMBER]
        _refuse(shown(path), batch["line"], ~np.isfinite(batch[number]), f"the {number} is not a finite number")
        yield batch


def _read_text(
    path: str, layout: text.LineLayout, schema: pa.Schema, blocks: Iterator[bytes], *, is_begin: bool
) -> Iterator[pa.RecordBatch]:
    seen = 0
    begun = not (layout.tabs and is_begin)  # BEIR's judgements usually begin with a header
    for block in blocks:
        lines.refuse_other_ends(path, block, seen)
        rows = block
        if not begun:
            head = _header(block)
            seen += head.count(b"\n")
            rows = block[len(head) :]
            begun = bool(block.strip())
        if arrays := text.parse_rows(rows, layout):
            line = pa.array(np.arange(seen + 1, seen + 1 + len(arrays[0])))
            seen += len(line)
            yield pa.RecordBatch.from_arrays([*arrays, line], schema=schema)
            continue
        fields = layout.split(rows)
        batch = _batch(path, pa.array(fields.line + seen + 1), layout, schema, fields)
        seen += fields.lines_seen
        if batch.num_rows:
            yield batch


def _header(block: bytes) -> bytes:
    """The lines of a block of BEIR's judgements up to the end of its header; empty if there is no header."""
    begin = block.rfind(b"\n", 0, len(block) - len(block.lstrip())) + 1
    end = block.find(b"\n", begin) + 1 or len(block)
    fields = text.split_tabs(block[begin:end], [2])
    try:
        block[begin:end].decode()
    except UnicodeDecodeError:
        return b""  # the reader of judgements refuses it
    is_header = fields.count.tolist() in ([3], [4]) and not _is_number(fields.columns[0][0])
    return block[:end] if is_header else b""


def _batch(
    path: str, line: pa.Array, layout: text.LineLayout, schema: pa.Schema, fields: text.Fields
) -> pa.RecordBatch:
    """The text columns of a block as a batch; errors name the line."""
    refuse = partial(_refuse, path, line)
    refuse(fields.count < layout.at_least, f"has fewer than {layout.at_least} columns")
    refuse(fields.count > layout.at_most, f"has more than {layout.at_most} columns")
    for column in fields.columns:
        lines.refuse_not_utf8(path, line, column)
    query, doc, words, *further = fields.columns
    for column in further if layout.rank is not None else ():
        _numbers(refuse, column, "rank", "; an id in a TREC run must not contain blanks (in Parquet it may)")
    values = _numbers(refuse, words, schema.names[_NUMBER])
    for name, array in (("query id", query), ("document id", doc)):
        for bad, fault in ids.faults(array):
            refuse(bad, f"the {name} {fault}")
    arrays = [query, doc, values, *further][: len(schema) - 1]
    return pa.RecordBatch.from_arrays([*arrays, line], schema=schema)


def _numbers(refuse: Callable[[BoolArray, str], None], words: pa.Array, name: str, advice: str = "") -> pa.Array:
    try:
        values = pc.cast(pc.utf8_trim_whitespace(words), pa.float64())
    except pa.ArrowInvalid:
        spelled = words.to_pylist()
        bad = np.array([not _is_number(word) for word in spelled])
        refuse(bad, f"the {name} {shortened(repr(spelled[int(np.argmax(bad))]))} is not a number{advice}")
        values = pa.array([float(word) for word in spelled])  # spellings that only Python knows
    refuse(~np.isfinite(values.to_numpy()), f"the {name} is not a finite number")
    return values


def _refuse(path: str, line: pa.Array, bad: BoolArray, problem: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        more = int(bad.sum()) - 1
        problem += f" ({pluralize(more, 'more such line follows', 'more such lines follow')})" if more else ""
        raise InputError(problem, path=path, line=line[row].as_py())


def _is_number(word: object) -> bool:
    try:
        float(str(word))
    except ValueError:
        return False
    return "_" not in str(word)  # Python alone reads 1_000 as a number


def read_nested(path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read a whole JSON file as ranx and BEIR's scripts save it; its rows are numbered from 1, in the file's order."""
    number = schema.names[_NUMBER]
    queries, documents, values, row = list[str](), list[str](), list[float](), 1
    for query, pairs in _nested_queries(path):
        for document, value in pairs:
            queries.append(query)
            documents.append(document)
            values.append(_nested_number(path, query, document, value, number))
        if len(values) >= _NESTED_ROWS:
            yield _nested_batch(path, schema, queries, documents, values, row)
            row += len(values)
            queries, documents, values = [], [], []
    if values or row == 1:
        yield _nested_batch(path, schema, queries, documents, values, row)


def _nested_queries(path: str) -> Iterator[tuple[str, _Pairs]]:
    content = b"".join(files.read_blocks(path))
    try:
        value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_Object)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(lines.CONVERT, path=path, line=line) from error
    except json.JSONDecodeError as error:
        advice = "; JSON lines are not read here" if error.msg == "Extra data" else ""
        problem = f"is not one JSON object of query id to document id to number: {error.msg}{advice}"
        raise InputError(problem, path=path, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON ({error})", path=path) from error
    if not value.pairs:
        raise InputError("the file is empty; it has no query", path=path)
    _refuse_repeated(path, value.pairs, "the query")
    for query, pairs in value.pairs:
        if not isinstance(pairs, _Object):
            problem = f"the query {shortened(query)!r} has {shortened(json.dumps(pairs, default=str))}"
            raise InputError(f"{problem}; an object of document id to number was expected", path=path)
        _refuse_repeated(path, pairs.pairs, f"the query {shortened(query)!r}, the document")
        yield query, pairs.pairs


class _Object:
    """A JSON object that keeps equal keys apart."""

    def __init__(self, pairs: _Pairs) -> None:
        self.pairs = pairs


def _refuse_repeated(path: str, pairs: _Pairs, what: str) -> None:
    if len(pairs) == len(dict(pairs)):
        return
    names = [name for name, _ in pairs]
    twice = next(name for name in names if names.count(name) > 1)
    raise InputError(f"{what} {shortened(twice)!r} is given twice; keep one", path=path)


def _nested_number(path: str, query: str, document: str, value: Any, number: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        written = shortened(json.dumps(value, ensure_ascii=False, default=lambda _: "{…}"))
        where = f"the query {shortened(query)!r}, the document {shortened(document)!r}"
        raise InputError(f"{where}: the {number} {written} is not a number", path=path)
    try:
        return float(value)
    except OverflowError:
        return math.inf  # refused with all other infinite numbers


def _nested_batch(
    path: str, schema: pa.Schema, queries: list[str], documents: list[str], values: list[float], row: int
) -> pa.RecordBatch:
    try:
        arrays = [pa.array(queries, pa.string()), pa.array(documents, pa.string()), pa.array(values, pa.float64())]
    except UnicodeEncodeError as error:
        raise InputError("an id holds half a character (a lone surrogate such as \\ud83d)", path=path) from error
    for name, array in zip(("query id", "document id"), arrays[:2], strict=True):
        for bad, fault in ids.faults(array):
            if bad.any():
                raise InputError(f"the {name} {shortened(array[int(bad.argmax())].as_py())!r} {fault}", path=path)
    line = pa.array(range(row, row + len(values)), pa.int64())
    return pa.RecordBatch.from_arrays([*arrays, line], schema=columns.with_line(schema))


def count_judge_lines(path: str) -> int:
    return sum(len(places) for _, places in _judge_blocks(path))


def refuse_judge_lines(path: str) -> None:
    """Refuse a file with a judge's lines if people's judgements are needed."""
    seen = 0
    for block, places in _judge_blocks(path):
        if places:
            problem = "already has grades from a judge; holes can only be filled in judgements made by people"
            raise InputError(problem, path=path, line=seen + block.count(b"\n", 0, places[0]) + 1)
        seen += block.count(b"\n")


def _judge_blocks(path: str) -> Iterator[tuple[bytes, list[int]]]:
    """Blocks of whole lines, with the positions of a judge's lines in them."""
    pattern = _JUDGE_LINES.get(recognise(path, "qrels"))
    if pattern is None:
        return
    for block in files.read_blocks(path):
        yield block, [match.start() for match in pattern.finditer(block)]
