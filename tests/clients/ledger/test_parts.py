"""Parts: their size on disk and row groups; damage is noticed, and no other file stays open."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankbeam.transforms.clients.ledger import LedgerEntry
from rankbeam.transforms.clients.ledger.parts import Encoder, ForeignPart, PartError, PartReader
from rankbeam.transforms.clients.ledger.rows import GROUP_BYTES, GROUP_ROWS, row_groups, table_of
from rankbeam.transforms.records.calls.steps import SearchDepth

OPEN_FILES = Path("/proc/self/fd")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def rows(count: int) -> pa.Table:
    return table_of([LedgerEntry(f"key{number}", SearchDepth(10), '"good"', 1, 0.5, NOW) for number in range(count)])


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([2] * (GROUP_ROWS + 1), [GROUP_ROWS, 1]),
        ([GROUP_BYTES // 2, GROUP_BYTES // 2, 2], [2, 1]),
        ([GROUP_BYTES + 1, 2, GROUP_BYTES - 2, 2], [1, 2, 1]),
        ([], []),
    ],
    ids=["rows", "bytes", "one that is larger than a group", "none"],
)
def test_row_groups_are_bounded_in_rows_and_in_bytes(sizes: list[int], expected: list[int]) -> None:
    texts = {size: "x" * size for size in sizes}
    entries = [LedgerEntry(f"key{place}", None, texts[size], 1, 0.5, NOW) for place, size in enumerate(sizes)]
    groups = list(row_groups(entries))
    assert [len(group) for group in groups] == expected
    assert [entry for group in groups for entry in group] == entries


def test_no_column_of_a_part_has_a_dictionary_or_statistics() -> None:
    encoder = Encoder()
    encoder.add(rows(100))
    group = pq.ParquetFile(pa.BufferReader(encoder.finish())).metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    assert group.num_rows == 100
    assert {(column.has_dictionary_page, column.is_stats_set, column.compression) for column in columns} == {
        (False, False, "ZSTD")
    }


def test_additions_share_a_row_group_as_long_as_it_has_room() -> None:
    encoder, piece = Encoder(), rows(GROUP_ROWS // 2)
    for table in (piece, piece, piece[:1], piece[:1]):
        encoder.add(table)
    metadata = pq.ParquetFile(pa.BufferReader(encoder.finish())).metadata
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [GROUP_ROWS, 2]


def test_an_altered_page_is_noticed_by_its_checksum(tmp_path: Path) -> None:
    encoder = Encoder()
    encoder.add(rows(100))
    part = bytearray(encoder.finish())
    column = pq.ParquetFile(pa.BufferReader(bytes(part))).metadata.row_group(0).column(0)
    part[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path = tmp_path / "part-0.parquet"
    path.write_bytes(part)
    with PartReader(str(path)) as reader, pytest.raises(PartError) as damaged:
        reader.rows(0)
    assert "CRC checksum" in str(damaged.value.__cause__)


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="the system does not list open files")
@pytest.mark.parametrize("is_whole", [True, False], ids=["another program's", "cut short"])
def test_a_file_that_is_refused_is_closed(is_whole: bool, tmp_path: Path) -> None:
    path = tmp_path / "part-0.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    if not is_whole:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ForeignPart if is_whole else PartError) as refused:
        PartReader(str(path))
    assert path not in [file.resolve() for file in OPEN_FILES.iterdir()]
    assert refused.value.__traceback__ is not None  # which refers to the reader: it was not closed for being dropped
