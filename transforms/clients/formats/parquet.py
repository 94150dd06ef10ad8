"""Read columns of a Parquet file under the names that people give them."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.clients import files
from transforms.kernels import text
from transforms.records.errors import InputError

_BATCH_ROWS, _BATCH_BYTES = 1 << 18, 16 << 20
_ROWS_TO_JUDGE_BY = 1 << 10
_STREAM_BYTES = 1 << 20


def open_file(path: str) -> pq.ParquetFile:
    """Open a Parquet file on any filesystem.

    Raises:
        InputError: it is damaged.
    """
    # Page by page where seeking is free; elsewhere each column of a row group in one request. Arrow's default would
    # hold the bytes of all row groups at once.
    buffer_size = _STREAM_BYTES if files.is_local(path) else 0
    try:
        return pq.ParquetFile(files.open_raw(path), buffer_size=buffer_size, pre_buffer=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"the Parquet file is cut short or damaged ({error}); copy it again", path=path) from error


def find_columns(path: str, found: Sequence[str], wanted: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Which of a table's columns holds what is wanted.

    Args:
        path: the file, for messages.
        found: names of the columns there are.
        wanted: for each of our names, the names people give it, best first.

    Raises:
        InputError: a wanted column is missing; the message lists those there are.
    """
    names = {}
    missing = []
    for ours, theirs in wanted.items():
        name = next((name for name in theirs if name in found), None)
        if name is None:
            missing.append(f"no column for {ours} (one of {', '.join(theirs)})")
        else:
            names[ours] = name
    if missing:
        raise InputError(f"{'; '.join(missing)}; the table has: {', '.join(found)}", path=path)
    return names


def read(path: str, wanted: Mapping[str, Sequence[str]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read some columns of a Parquet file, cast to a schema.

    Args:
        path: the file.
        wanted: for each column of the schema except `line`, the names people give it.
        schema: what to yield; its last column is `line`, the number of the row from 1.

    Raises:
        InputError: a column is missing, holds nulls, or cannot be cast.
    """
    file = open_file(path)
    names = find_columns(path, file.schema_arrow.names, wanted)
    rows = 0
    try:
        chosen = list(names.values())
        for batch in file.iter_batches(batch_size=_batch_rows(file, chosen), columns=chosen, use_threads=False):
            line = pa.array(np.arange(rows + 1, rows + batch.num_rows + 1))
            arrays = [cast(path, batch.column(name), schema.field(ours), rows) for ours, name in names.items()]
            rows += batch.num_rows
            yield pa.RecordBatch.from_arrays([*arrays, line], schema=schema)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"row group cannot be read ({error})", path=path, line=rows + 1) from error
    finally:
        file.close(force=True)


def _batch_rows(file: pq.ParquetFile, names: Sequence[str]) -> int:
    """How many rows to read at once, by the size of the first ones: ids may be of a few bytes or of a thousand."""
    first = next(file.iter_batches(batch_size=_ROWS_TO_JUDGE_BY, columns=names, use_threads=False), None)
    if first is None or first.num_rows == 0:
        return _BATCH_ROWS
    fitting = _BATCH_BYTES * int(first.num_rows) // max(1, int(first.nbytes))
    return max(_ROWS_TO_JUDGE_BY, min(_BATCH_ROWS, fitting))


def cast(path: str, column: pa.Array, field: pa.Field, rows: int) -> pa.Array:
    """A column as the type of a field, without nulls.

    Args:
        path: the file, for messages.
        column: the values.
        field: the wanted name and type; an id must not be empty.
        rows: how many rows came before.

    Raises:
        InputError: a value is null, empty, or cannot be cast.
    """
    if column.null_count:
        line = rows + 1 + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"the {field.name} is null", path=path, line=line)
    try:
        found = pc.cast(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        problem = f"column {field.name} holds {column.type}, which cannot be read as {field.type} ({error})"
        raise InputError(problem, path=path, line=_first_uncastable(column, field.type, rows)) from error
    if field.name.endswith("_id") and (empty := text.is_empty(found)).any():
        raise InputError(f"the {field.name} is empty", path=path, line=rows + 1 + int(np.argmax(empty)))
    return found


def _first_uncastable(column: pa.Array, kind: pa.DataType, rows: int) -> int | None:
    """The row, from 1, of the first value that cannot be cast; None where no value of the column can."""
    for place in range(len(column)):
        try:
            pc.cast(column.slice(place, 1), kind)
        except pa.ArrowInvalid:
            return rows + place + 1
        except pa.ArrowNotImplementedError:
            return None
    return None
