"""Values separated by commas, below a header with the names in common use: as spreadsheets and pandas write."""

import csv
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
from pyarrow import csv as arrow_csv

from rankbeam.transforms.clients.formats import named, utf8
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

HEADER_LINES = 1
_ROW = re.compile(r"Row #(\d+)")


def header(line: str, role: str) -> list[str] | None:
    """The names of a header that has all columns of a role; None for any other line.

    >>> header("q_id,doc_id,score,rank", "run"), header("q1,d1,0.5", "run")
    (['q_id', 'doc_id', 'score', 'rank'], None)
    """
    try:
        names = [name.strip() for name in next(csv.reader([line]), [])]
    except csv.Error:  # a long text, or a line end that is none here
        return None
    return names if all(any(name in names for name in known) for known in named.WANTED[role].values()) else None


def batches(path: str, role: str) -> Iterator[tuple[Mapping[str, str], Iterator[pa.RecordBatch]]]:
    """The wanted columns of a file, by our names, and its rows as texts.

    Args:
        path: a file that `recognise` has found to have a header.
        role: of the file.

    Yields:
        One pair, while the file is open.

    Raises:
        InputError: the file is not UTF-8, a row has another number of columns, or there is no row.
    """
    first = files.read_head(path).decode("utf-8", "replace").split("\n", 1)[0].rstrip("\r")
    columns = header(first, role)
    if columns is None:
        raise InputError(f"has no header with the columns of {role}", path=path, line=1)
    names = named.find_columns(path, columns, named.WANTED[role])
    is_text = named.WANTED[role] is named.TEXTS
    chosen = columns if is_text else list(names.values())
    with _refused(path), files.open_text(path) as stream:
        reader = arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(use_threads=False, column_names=columns, skip_rows=1),
            arrow_csv.ParseOptions(newlines_in_values=is_text),
            arrow_csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()), include_columns=chosen),
        )
        yield names, _some(path, reader)


def read(path: str, role: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read judgements or a run, as `named.mapped` does; lines count from the header, which is the first.

    Raises:
        InputError: for the reasons of `batches` and `named.mapped`.
    """
    for names, rows in batches(path, role):
        yield from named.mapped(path, rows, names, schema, HEADER_LINES)


def _some(path: str, reader: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in reader:
        rows += batch.num_rows
        yield batch
    if not rows:
        raise InputError("the file has a header and no row below it", path=path)


@contextmanager
def _refused(path: str) -> Iterator[None]:
    """What Arrow's reader refuses, as errors with file and line."""
    try:
        yield
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        text = str(error)
        row = _ROW.search(text)
        if "UTF8" in text:
            raise InputError(utf8.CONVERT, path=path) from error
        problem = text.removeprefix("CSV parse error: ").split(": ", 1)[-1]
        raise InputError(f"cannot be read: {problem}", path=path, line=int(row[1]) if row else None) from error
