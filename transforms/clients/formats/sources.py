"""Paths of an experiment: files, a file of cases, or a BigQuery table, which counts as one file."""

from collections.abc import Iterable, Iterator

from rankbeam.transforms.clients.bigquery.names import TableSource, is_table
from rankbeam.transforms.clients.formats.cases.source import file_of, is_cases
from rankbeam.transforms.clients.local_folders import source_of
from rankbeam.transforms.clients.storage import matching
from rankbeam.transforms.records.errors import shortened

_MOST_LISTED = 200  # characters


def expand(pattern: str) -> list[str]:
    """The files that a path or glob pattern names, sorted, as `matching.expand` returns them; or the table."""
    return [pattern] if is_table(pattern) or is_cases(pattern) else matching.expand(pattern)


def size(pattern: str) -> int:
    """Stored bytes of all files that a path or pattern names, or of a table."""
    return sum(bytes_stored for _, bytes_stored, _ in version(pattern))


def version(pattern: str) -> tuple[tuple[str, int, float], ...]:
    """Path, bytes and modification time of everything that a pattern names; they change with the content."""
    pattern = file_of(pattern)
    if not is_table(pattern):
        return matching.version(pattern)
    from rankbeam.transforms.clients.bigquery.read import describe

    table = describe(TableSource.parse(pattern))
    return ((pattern, table.stored_bytes, table.modified),)


def shown(path: str) -> str:
    """The name of a path in messages; a file's path is unchanged, but a folder of documents keeps its own name."""
    return str(TableSource.parse(path)) if is_table(path) else source_of(file_of(path))


def part_warnings(paths: Iterable[str]) -> Iterator[str]:
    """Warnings about files of which only some parts are among the paths."""
    for name, missing in matching.missing_parts(dict.fromkeys(map(shown, paths))).items():
        listed = shortened(", ".join(missing), _MOST_LISTED)
        yield f"{name} is one of several files, and others are not read: {listed}"
