"""Check the files of an input before any work starts: their format, their columns, and that they hold something."""

from collections.abc import Sequence

from rankbeam.transforms.clients.formats import parquet, tables
from rankbeam.transforms.clients.formats.recognise import EXPECTED, Format, recognise
from rankbeam.transforms.records.errors import InputError

_MOST_RECOGNISED = 100


def check(paths: Sequence[str], role: str) -> None:
    """Refuse an input that cannot be what it should be.

    Args:
        paths: its files, at least one, or a table of BigQuery. Only some of many are looked at.
        role: what it is meant to be: "queries", "corpus", "qrels" or "run".

    Raises:
        InputError: a file is of another format, lacks a column, or there is no row in any of them.
    """
    formats = [recognise(path, role) for path in paths[:_MOST_RECOGNISED]]
    if formats[0] is Format.BIGQUERY:
        tables.check(paths[0], role)
    elif formats[0] is Format.PARQUET:
        parquet.check(paths[0], role)  # the others are parts of one table, as a rule, and are checked as they are read
        if all(found is Format.PARQUET for found in formats) and not any(map(parquet.has_rows, paths)):
            others = "" if len(paths) == 1 else ", and so are the others"
            raise InputError(f"the file is empty{others}; {EXPECTED[role]} expected", path=paths[0])
