"""What the paths of an experiment name: files, or a table of BigQuery, which is one of its own."""

from rankbeam.transforms.clients.bigquery.read_source import TableSource, is_table
from rankbeam.transforms.clients.storage import matching


def expand(pattern: str) -> list[str]:
    """The files that a path or glob pattern names, sorted, as `matching.expand` has it; or the table."""
    return [pattern] if is_table(pattern) else matching.expand(pattern)


def size(pattern: str) -> int:
    """Bytes of all files that a path or pattern names, or of a table, as stored."""
    return sum(bytes_stored for _, bytes_stored, _ in version(pattern))


def version(pattern: str) -> tuple[tuple[str, int, float], ...]:
    """Path, bytes and time of change of everything that a pattern names: other values, other content."""
    if not is_table(pattern):
        return matching.version(pattern)
    from rankbeam.transforms.clients.bigquery.read_tables import describe

    table = describe(TableSource.parse(pattern))
    return ((pattern, table.stored_bytes, table.modified),)
