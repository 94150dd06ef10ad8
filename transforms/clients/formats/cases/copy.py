"""Copy a file of cases and add columns, keeping the order of its rows and its layout.

In a file of conversations, each added column holds a list with one entry for each turn.
"""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.formats.cases.objects import Shape, delimiter_of, list_place, shape_of
from rankbeam.transforms.clients.formats.cases.read import Case, read_rows
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.storage.parquet import open_file
from rankbeam.transforms.records.errors import InputError

Values = Mapping[str, float | str | None]  # the values of a case by column
Cells = Mapping[str, Any]  # the values of a row by column; lists in a file of conversations


def write_copy(source: CaseSource, new: str, names: Sequence[str], values: Callable[[Case], Values]) -> int:
    """Write the copy with the added columns, the last of which holds texts; return its number of rows."""
    files.refuse_existing(new)
    rows = _filled_rows(source, names, values)
    if all(len(turns) == 1 for _, turns in rows):
        cells: Filled = [(row, turns[0]) for row, turns in rows]
    else:
        cells = [(row, {name: [turn[name] for turn in turns] for name in names}) for row, turns in rows]
    return _WRITERS[shape_of(source.path)](source, new, names, cells)


Filled = Sequence[tuple[dict[str, Any], Cells]]


def _filled_rows(
    source: CaseSource, names: Sequence[str], values: Callable[[Case], Values]
) -> list[tuple[dict[str, Any], list[Values]]]:
    filled: list[tuple[dict[str, Any], list[Values]]] = []
    for row, case in read_rows(source):
        if filled and filled[-1][0] is row:
            filled[-1][1].append(values(case))
            continue
        if taken := next((name for name in names if name in row), None):
            raise InputError(f"has a column {taken!r} already", path=source.path, line=case.line)
        filled.append((row, [values(case)]))
    return filled


def _write_lines(source: CaseSource, new: str, names: Sequence[str], rows: Filled) -> int:  # noqa: ARG001  one signature
    values = ({**row, **{name: more[name] for name in names}} for row, more in rows)
    lines = [json.dumps(value, ensure_ascii=False, default=str) for value in values]
    files.write(new, "".join(f"{line}\n" for line in lines).encode())
    return len(lines)


def _write_document(source: CaseSource, new: str, names: Sequence[str], rows: Filled) -> int:
    whole = json.loads(files.read_all(source.path))
    items = whole
    for key in list_place(source.path):
        items = items[key]
    for item, (_, more) in zip(items, rows, strict=True):
        item.update({name: more[name] for name in names})
    files.write(new, (json.dumps(whole, ensure_ascii=False, indent=2) + "\n").encode())
    return len(items)


def _write_csv(source: CaseSource, new: str, names: Sequence[str], rows: Filled) -> int:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter_of(source.path), lineterminator="\n")
    for row, _ in rows[:1]:
        writer.writerow([*row, *names])
    for row, more in rows:
        writer.writerow([_cell(value) for value in (*row.values(), *(more[name] for name in names))])
    files.write(new, text.getvalue().encode())
    return len(rows)


def _cell(value: Any) -> Any:
    return "" if value is None else json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def _write_parquet(source: CaseSource, new: str, names: Sequence[str], rows: Filled) -> int:
    with open_file(source.path) as file:
        table = file.read()
    added = [more for _, more in rows]
    for name in names:
        kind = pa.string() if name == names[-1] else pa.float64()
        kind = pa.list_(kind) if any(isinstance(more[name], list) for more in added) else kind
        table = table.append_column(name, pa.array([more[name] for more in added], kind))
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    files.write(new, buffer.getvalue())
    return len(added)


_WRITERS = {
    Shape.LINES: _write_lines,
    Shape.DOCUMENT: _write_document,
    Shape.CSV: _write_csv,
    Shape.PARQUET: _write_parquet,
    Shape.TABLE: _write_lines,
    Shape.ARROW: _write_lines,
}
