"""Paths of an experiment: files, a file of cases, or a table of BigQuery, which is one file of its own."""

from collections.abc import Sequence

from rankbeam.transforms.clients.bigquery import read_source
from rankbeam.transforms.clients.bigquery.read_source import TableSource, is_table
from rankbeam.transforms.clients.formats.cases.source import file_of, is_cases
from rankbeam.transforms.clients.storage import matching
from rankbeam.transforms.records.errors import InputError


def expand(pattern: str) -> list[str]:
    """The files that a path or glob pattern names, sorted, as `matching.expand` has it; or the table."""
    return [pattern] if is_table(pattern) or is_cases(pattern) else matching.expand(pattern)


def size(pattern: str) -> int:
    """Bytes of all files that a path or pattern names, or of a table, as stored."""
    return sum(bytes_stored for _, bytes_stored, _ in version(pattern))


def version(pattern: str) -> tuple[tuple[str, int, float], ...]:
    """Path, bytes and time of change of everything that a pattern names: other values, other content."""
    if not is_table(pattern):
        return matching.version(file_of(pattern))
    from rankbeam.transforms.clients.bigquery.read import describe

    table = describe(TableSource.parse(pattern))
    return ((pattern, table.stored_bytes, table.modified),)


def shown(path: str) -> str:
    """The name of a path in messages; a file's path is unchanged."""
    return file_of(path) if is_cases(path) else read_source.shown(path)


Place = tuple[str, int]
"""A file and a line of it, from 1."""


def repeated_at(problem: str, places: Sequence[Place], advice: str = "") -> InputError:
    """The error of a row that is repeated: located at the last place, naming the earlier ones.

    >>> str(repeated_at("is given twice", [("a", 1), ("b", 2)], "keep one"))
    'b:2: is given twice (also at a:1); keep one'
    """
    *before, (path, line) = places
    earlier = ", ".join(f"line {row}" if name == path else f"{name}:{row}" for name, row in before)
    also = f" (also at {earlier})" if earlier else ""
    return InputError(f"{problem}{also}" + (f"; {advice}" if advice else ""), path=path, line=line)
