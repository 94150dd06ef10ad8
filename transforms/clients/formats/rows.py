"""Readers of judgements and runs: millions of short rows, read in columns."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.clients import files
from transforms.clients.formats import parquet
from transforms.clients.formats.recognise import Format, recognise
from transforms.kernels import text
from transforms.kernels.arrays import BoolArray
from transforms.records import columns
from transforms.records.errors import InputError

QUERY_NAMES = ("query_id", "query-id", "qid", "query")
DOC_NAMES = ("doc_id", "corpus-id", "corpus_id", "docid", "docno", "document_id")
GRADE_NAMES = ("grade", "relevance", "rel", "score", "label")


def read_qrels(path: str) -> Iterator[pa.RecordBatch]:
    """Read judgements: TREC, BEIR or Parquet.

    Yields:
        Batches of `columns.QRELS` with the line of each row.

    Raises:
        InputError: the file, or a line of it, is not what it should be.
    """
    found = recognise(path, "qrels")
    if found is Format.PARQUET:
        wanted = {"query_id": QUERY_NAMES, "doc_id": DOC_NAMES, "grade": GRADE_NAMES}
        for batch in parquet.read(path, wanted, columns.with_line(columns.QRELS)):
            _refuse(path, batch["line"], ~np.isfinite(batch["grade"]), "the grade is not a finite number")
            yield batch
        return
    beir = found is Format.BEIR_QRELS
    names = ("query id", "document id", "grade")
    wanted_at, width = ([0, 1, 2], 3) if beir else ([0, 2, 3], 4)
    for lines, (query, doc, grade), first in _fields(path, wanted_at, width, width, tabs=beir):
        rows = _Rows(path, lines, names)
        skip = 1 if beir and first and not _is_number(grade[0]) else 0
        yield rows.batch(columns.QRELS, query, doc, grade, skip)


def read_run(path: str) -> Iterator[pa.RecordBatch]:
    """Read a run: TREC (words after the tag are ignored) or Parquet.

    Yields:
        Batches of `columns.RUN` with the line of each row.

    Raises:
        InputError: the file, or a line of it, is not what it should be.
    """
    if recognise(path, "run") is Format.PARQUET:
        wanted = {"query_id": QUERY_NAMES, "doc_id": DOC_NAMES, "score": ("score",)}
        for batch in parquet.read(path, wanted, columns.with_line(columns.RUN)):
            _refuse(path, batch["line"], ~np.isfinite(batch["score"]), "the score is not a finite number")
            yield batch
        return
    for lines, (query, doc, score), _ in _fields(path, [0, 2, 4], 5, None, tabs=False):
        yield _Rows(path, lines, ("query id", "document id", "score")).batch(columns.RUN, query, doc, score)


def run_tag(path: str) -> str | None:
    """The tag in a TREC run's sixth column, from its first line; None for Parquet or where there is none."""
    if recognise(path, "run") is Format.PARQUET:
        return None
    fields = text.split_blanks(files.read_head(path), [5])
    return next(iter(fields.columns[0].to_pylist()), None) or None


def _fields(
    path: str, wanted: Sequence[int], at_least: int, at_most: int | None, *, tabs: bool
) -> Iterator[tuple[pa.Array, tuple[pa.Array, ...], bool]]:
    """The wanted columns of every block, with line numbers, and whether it is the first block."""
    lines_before = 0
    for block in files.read_blocks(path):
        fields = text.split_tabs(block, wanted) if tabs else text.split_blanks(block, wanted)
        line = pa.array(fields.line + lines_before + 1)
        _refuse(path, line, fields.count < at_least, f"has fewer than {at_least} columns")
        if at_most is not None:
            _refuse(path, line, fields.count > at_most, f"has more than {at_most} columns")
        for column in fields.columns:
            _check_utf8(path, line, column)
        if len(line):
            yield line, fields.columns, lines_before == 0
        lines_before += fields.lines_seen


class _Rows:
    """Turns text columns of one block into a batch, naming the line of what cannot be turned."""

    def __init__(self, path: str, line: pa.Array, names: Sequence[str]) -> None:
        self._path, self._line, self._names = path, line, names

    def batch(
        self, schema: pa.Schema, query: pa.Array, doc: pa.Array, number: pa.Array, skip: int = 0
    ) -> pa.RecordBatch:
        line = self._line.slice(skip)
        values = self._numbers(line, number.slice(skip))
        arrays = [query.slice(skip), doc.slice(skip), values, line]
        for name, array in zip(self._names, arrays[:2], strict=False):
            _refuse(self._path, line, _to_numpy(pc.equal(array, "")), f"the {name} is empty")
        return pa.RecordBatch.from_arrays(arrays, schema=columns.with_line(schema))

    def _numbers(self, line: pa.Array, words: pa.Array) -> pa.Array:
        try:
            values = pc.cast(pc.utf8_trim_whitespace(words), pa.float64())
        except pa.ArrowInvalid:
            spelled = words.to_pylist()
            bad = np.array([not _is_number(word) for word in spelled])
            what = f"the {self._names[2]} {spelled[int(np.argmax(bad))]!r} is not a number"
            _refuse(self._path, line, bad, what)
            values = pa.array([float(word) for word in spelled])  # spellings that only Python knows
        bad = ~np.isfinite(values.to_numpy())
        _refuse(self._path, line, bad, f"the {self._names[2]} is not a finite number")
        return values


def _refuse(path: str, line: pa.Array, bad: BoolArray, problem: str) -> None:
    if bad.any():
        place = int(np.argmax(bad))
        more = int(bad.sum()) - 1
        problem += f" ({more} more such lines follow)" if more else ""
        raise InputError(problem, path=path, line=line[place].as_py())


def _check_utf8(path: str, line: pa.Array, column: pa.Array) -> None:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        data = column.cast(pa.binary())
        for place, value in enumerate(data.to_pylist()):
            try:
                value.decode("utf-8")
            except UnicodeDecodeError:
                problem = "is not UTF-8; convert the file, for example with iconv"
                raise InputError(problem, path=path, line=line[place].as_py()) from error
        raise


def _to_numpy(array: pa.Array) -> BoolArray:
    values: BoolArray = array.to_numpy(zero_copy_only=False)
    return values


def _is_number(word: object) -> bool:
    try:
        float(str(word))
    except ValueError:
        return False
    return "_" not in str(word)  # Python's way of writing a million, nobody else's
