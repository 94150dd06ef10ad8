"""What a part costs on disk, and that a file which is no part is left closed."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankbeam.transforms.clients.ledger import Entry
from rankbeam.transforms.clients.ledger.parts import Encoder, ForeignPart, PartReader
from rankbeam.transforms.clients.ledger.rows import table_of
from rankbeam.transforms.records.calls.reach import Reach

OPEN_FILES = Path("/proc/self/fd")


def test_no_column_of_a_part_has_a_dictionary_or_statistics() -> None:
    encoder = Encoder()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    encoder.add(table_of([Entry(f"key{number}", Reach(10), '"good"', 1, 0.5, now) for number in range(100)]))
    group = pq.ParquetFile(pa.BufferReader(encoder.finish())).metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    assert group.num_rows == 100
    assert {(column.has_dictionary_page, column.is_stats_set, column.compression) for column in columns} == {
        (False, False, "ZSTD")
    }


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="the system does not list open files")
def test_another_programs_file_is_closed_when_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "part-0.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(ForeignPart) as refused:
        PartReader(str(path))
    assert path not in [each.resolve() for each in OPEN_FILES.iterdir()]
    assert refused.value.__traceback__ is not None  # which refers to the reader: it was not closed for being dropped
