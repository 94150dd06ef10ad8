"""Read columns of a Parquet file under the names in common use."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.formats import named
from rankbeam.transforms.clients.storage import gcs
from rankbeam.transforms.clients.storage.parquet import open_file
from rankbeam.transforms.records.errors import InputError

_BATCH_ROWS, _BATCH_BYTES = 1 << 18, 16 << 20
_SAMPLE_ROWS = 1 << 10


def read(
    path: str, known: named.ColumnNames, schema: pa.Schema, groups: range | None = None
) -> Iterator[pa.RecordBatch]:
    """Read some columns of a Parquet file, cast to a schema."""
    with open_file(path) as file:
        names = named.find_columns(path, file.schema_arrow.names, known)
        chosen, rows = list(names.values()), 0
        try:
            size = _batch_rows(file, chosen)
            batches = file.iter_batches(size, groups, columns=chosen, use_threads=False)
            for batch in named.mapped(path, batches, names, schema):
                rows += batch.num_rows
                yield batch
        except (pa.ArrowInvalid, OSError, *gcs.errors(path)) as error:
            raise InputError(f"row group cannot be read ({error})", path=path, line=rows + 1) from error


def read_values(path: str, role: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read the columns of a role from a Parquet file, and the optional ones that it has, as Python values."""
    with open_file(path) as file:
        columns = file.schema_arrow.names
        names = named.find_columns(path, columns, named.COLUMN_NAMES[role]) | named.optional_columns(columns, role)
        row = 0
        try:
            for batch in file.iter_batches(_SAMPLE_ROWS, columns=list(names.values()), use_threads=False):
                for values in batch.to_pylist():
                    row += 1
                    yield row, {ours: values[theirs] for ours, theirs in names.items()}
        except (pa.ArrowInvalid, OSError, *gcs.errors(path)) as error:
            raise InputError(f"row group cannot be read ({error})", path=path, line=row + 1) from error


def check(path: str, role: str) -> None:
    """Refuse a file that lacks a column of its role."""
    with open_file(path) as file:
        named.find_columns(path, file.schema_arrow.names, named.COLUMN_NAMES[role])


def has_rows(path: str) -> bool:
    """Return whether a file has rows, by its footer."""
    with open_file(path) as file:
        return bool(file.metadata.num_rows)


def _batch_rows(file: pq.ParquetFile, names: Sequence[str]) -> int:
    """The rows to read at once, from the size of the first ones: ids may have a few bytes or a thousand."""
    first = next(file.iter_batches(batch_size=_SAMPLE_ROWS, columns=names, use_threads=False), None)
    if first is None or first.num_rows == 0:
        return _BATCH_ROWS
    fitting = _BATCH_BYTES * int(first.num_rows) // max(1, int(first.nbytes))
    return max(_SAMPLE_ROWS, min(_BATCH_ROWS, fitting))
