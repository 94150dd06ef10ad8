"""Tables that people open and edit in a spreadsheet: CSV whose cells no program takes for formulas."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError

FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
"""First characters of cells that spreadsheets run as formulas; the last one is the mark that prevents this."""


def safe(cell: str) -> str:
    """Mark a cell that a program might take for a formula.

    >>> safe("=1+1"), safe("'tis"), safe("plain")
    ("'=1+1", "''tis", 'plain')
    """
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def plain(cell: str) -> str:
    """The cell as it was before `safe`; a cell whose mark a program has removed is unchanged.

    >>> plain("'=1+1"), plain("''tis"), plain("=1+1")
    ('=1+1', "'tis", '=1+1')
    """
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([safe(row[name]) for name in columns] for row in rows)
    return text.getvalue()


def delimiter_in(text: str) -> str:
    """The separator in a header: a comma, unless another character is more frequent."""
    return max(",;\t", key=text.lstrip().split("\n", 1)[0].count)


def read_text(path: str) -> str:
    """The text of a file that was saved with or without a byte order mark."""
    return files.read_text(path, "save it as UTF-8", encoding="utf-8-sig")


def table_rows(
    path: str, text: str, needed: Sequence[str] = (), writer: str = "", problems: list[InputError] | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table, by header, as they were before `safe`, each with the line in which it begins.

    Columns that a table by the command `writer` has are `needed`. `problems` collects problems of single rows; by
    default, the first one is raised.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter_in(text))
    try:
        header = [cell.strip() for cell in next(reader, [])]
        if missing := [name for name in needed if name not in header]:
            raise InputError(f"has no column {missing[0]}; it was not written by `{writer}`", path=path, line=1)
        line = reader.line_num + 1
        for cells in reader:
            if not any(map(str.strip, cells)):
                pass  # spreadsheets also save cleared rows
            elif len(cells) != len(header):
                error = InputError(f"has {len(cells)} cells instead of {len(header)}", path=path, line=line)
                if problems is None:
                    raise error
                problems.append(error)
            else:
                yield line, {name: plain(cell) for name, cell in zip(header, cells, strict=True)}
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", path=path, line=reader.line_num) from error
