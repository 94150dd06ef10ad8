"""A lookup says what it could not read, and why, and says nothing of a ledger that is whole."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rankbeam.transforms.clients.ledger import Ledger, LedgerEntry
from rankbeam.transforms.clients.ledger.rows import SCHEMA
from rankbeam.transforms.records.calls.steps import SearchDepth

PAID = "answers of earlier calls cannot be read, and are paid for again if they are needed"


def entry(key: str, attempts: int = 1) -> LedgerEntry:
    return LedgerEntry(key, SearchDepth(10), '"' + "good " * 50 + '"', attempts, 0.5, datetime(2026, 1, 1, tzinfo=UTC))


def written(folder: Path, *entries: LedgerEntry) -> Path:
    """The path of the only part."""
    writer = Ledger(str(folder)).writer()
    for added in entries:
        writer.add(added)
    writer.close()
    [part] = folder.glob("calls-*")
    return part


def looked_up(folder: Path, *keys: str) -> tuple[list[str], list[str]]:
    """The keys that were found, and the warnings."""
    lookup = Ledger(str(folder)).lookup()
    lookup.refresh()
    return [row.key for row in lookup.read(dict.fromkeys(keys, SearchDepth(1)))], lookup.warnings()


def warning(folder: Path, part: Path, reason: str) -> str:
    return f"{part}: {PAID}: {reason}; `rankbeam ledger {folder}` names all damaged files"


def test_nothing_is_said_of_a_ledger_that_is_whole(tmp_path: Path) -> None:
    written(tmp_path, entry("a"), entry("b"))
    assert looked_up(tmp_path, "b", "c") == (["b"], [])


def test_a_part_that_is_torn_is_named(tmp_path: Path) -> None:
    part = written(tmp_path, entry("a"))
    part.write_bytes(part.read_bytes()[:-10])
    keys, [warning] = looked_up(tmp_path, "a")
    assert keys == []
    assert warning.startswith(f"{part}: {PAID}: cut short or damaged (")


@pytest.mark.parametrize("column", ["a", "b"])
def test_a_row_that_cannot_be_is_named_where_it_is_wanted(tmp_path: Path, column: str) -> None:
    part = written(tmp_path, entry("a"), entry("b", attempts=-1))
    keys, warnings = looked_up(tmp_path, column)
    assert keys == [key for key in ("a",) if key == column]
    assert warnings == ([] if column == "a" else [warning(tmp_path, part, "rows with impossible values")])


def test_a_damaged_page_of_answers_is_named_with_what_is_wrong(tmp_path: Path) -> None:
    part = written(tmp_path, entry("a"))
    column = pq.ParquetFile(part).metadata.row_group(0).column(SCHEMA.names.index("answer"))
    content = bytearray(part.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 3] ^= 8
    part.write_bytes(content)
    keys, [warning] = looked_up(tmp_path, "a")
    assert keys == []
    assert warning.startswith(f"{part}: {PAID}: cut short or damaged (")
