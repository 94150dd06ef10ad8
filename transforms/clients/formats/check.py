"""Check the files of an input before any work starts: their format, their columns, and that they have rows."""

from collections.abc import Sequence

from rankbeam.transforms.clients.formats import parquet, replay, tables
from rankbeam.transforms.clients.formats.recognise import EXPECTED, Format, recognise
from rankbeam.transforms.records.errors import InputError

_MOST_RECOGNISED = 100


def check(paths: Sequence[str], role: str) -> None:
    """Refuse an input that does not fit its role."""
    if role == "replay":
        for path in paths[:_MOST_RECOGNISED]:
            replay.check(path)
        return
    formats = [recognise(path, role) for path in paths[:_MOST_RECOGNISED]]
    if formats[0] is Format.BIGQUERY:
        tables.check(paths[0], role)
    elif formats[0] is Format.PARQUET:
        parquet.check(paths[0], role)  # other files usually belong to the same table, and are checked when read
        if all(form is Format.PARQUET for form in formats) and not any(map(parquet.has_rows, paths)):
            others = "" if len(paths) == 1 else ", and so are the others"
            raise InputError(f"the file is empty{others}; {EXPECTED[role]} expected", path=paths[0])
