"""BigQuery tables, Arrow and Parquet files, with the same roles, column names and types.

As in BigQuery, the case of a table's column names is ignored.
"""

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rankbeam.transforms.clients.bigquery import read
from rankbeam.transforms.clients.bigquery.names import TableSource, is_table
from rankbeam.transforms.clients.formats.syntax import lines, named_columns
from rankbeam.transforms.clients.storage import files, gcs
from rankbeam.transforms.clients.storage.parquet import MAGIC, open_file
from rankbeam.transforms.records.errors import InputError

_ARROW_FILE = b"ARROW1"
ARROW = (_ARROW_FILE, b"\xff\xff\xff\xff")
"""First bytes of an Arrow file, and of an Arrow stream, as Hugging Face saves datasets."""
_JSON = b"google:sqlType:json"
_TEXTS_MORE = ("title", "metadata")  # optional columns that `texts` reads
_BATCH_ROWS, _BATCH_BYTES = 1 << 18, 16 << 20
_SAMPLE_ROWS, _FIRST_ROWS = 1 << 10, 16
_MOST_MIB = files.LONGEST_LINE >> 20


def find_columns(path: str, role: str) -> dict[str, str]:
    """The table's names of a role's columns, by our names; no rows are read."""
    return _find_columns(path, _column_names(path), role)


def _find_columns(path: str, columns: Sequence[str], role: str) -> dict[str, str]:
    return named_columns.find_columns(_shown(path), columns, role, any_case=is_table(path))


def _column_names(path: str) -> Sequence[str]:
    if is_table(path):
        return read.describe(TableSource.parse(path)).columns
    with open_file(path) if _is_parquet(path) else _open_arrow(path) as file:
        return list(file.schema_arrow.names if isinstance(file, pq.ParquetFile) else file.schema.names)


def _shown(path: str) -> str:
    return str(TableSource.parse(path)) if is_table(path) else path


def _is_parquet(path: str) -> bool:
    return files.read_raw(path, len(MAGIC)) == MAGIC


def has_rows(path: str) -> bool:
    """Return whether a Parquet or Arrow file has rows."""
    if _is_parquet(path):
        with open_file(path) as file:
            return bool(file.metadata.num_rows)
    return any(batch.num_rows for batch in _arrow_batches(path, None))


def attributes_of_queries(path: str) -> set[str] | None:
    """The columns of a table that are attributes of queries; None if `metadata` may have more."""
    columns = _column_names(path)
    others = set(columns) - set(_find_columns(path, columns, "queries").values())
    further = {name for name in others if name.lower() in _TEXTS_MORE}
    return None if "metadata" in map(str.lower, further) else others - further


def streams(path: str, role: str) -> Iterator[str]:
    """Open a read session; yield the paths of its streams, at least one, which can be read like files."""
    columns = _selected_columns(path, _column_names(path), role) if role in named_columns.COLUMN_NAMES else None
    yield from (stream.path for stream in read.streams(TableSource.parse(path), columns or []))


def _selected_columns(path: str, columns: Sequence[str], role: str | None) -> list[str] | None:
    """The columns to read; None for all: without a role, and for texts, whose other columns are attributes."""
    if role is None:
        named_columns.refuse_repeated(path, columns)
        return None
    names = _find_columns(path, columns, role)
    return None if named_columns.COLUMN_NAMES[role] is named_columns.TEXTS else list(names.values())


def read_rows(path: str, role: str, schema: pa.Schema, groups: range | None = None) -> Iterator[pa.RecordBatch]:
    """Read a role's columns from a table, one of its streams, or a file, and cast them to a schema."""
    for names, rows in named_batches(path, role, groups):
        yield from named_columns.map_columns(_shown(path), rows, names, schema)


def named_batches(
    path: str, role: str, groups: range | None = None, most_rows: int = _BATCH_ROWS
) -> Iterator[tuple[Mapping[str, str], Iterator[pa.RecordBatch]]]:
    """The names of a role's columns, by our names, and the batches; yields nothing for a table without batches."""
    rows = batches(path, role, groups, most_rows)
    if (first := next(rows, None)) is not None:
        names = _find_columns(path, first.schema.names, role)
        yield names, (with_plain_json(batch, names.values()) for batch in chain([first], rows))


def batches(
    path: str, role: str | None = None, groups: range | None = None, most_rows: int = _BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """The batches of a table, an Arrow file, or row groups of a Parquet file, with the columns of a role or all."""
    if is_table(path):
        source = TableSource.parse(path)
        is_whole = role is not None and source.stream is None
        columns = _selected_columns(path, _column_names(path), role) if is_whole else None
        rows = read.batches(source, columns or [])
        yield from rows if role is None else map(_with_known_names, rows)
    elif _is_parquet(path):
        yield from _parquet_batches(path, role, groups, most_rows)
    else:
        yield from _arrow_batches(path, role)


def numbered_rows(path: str, rows: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of batches as Python values, with their numbers from 1."""
    number = 0
    for batch in rows:
        yield from enumerate(plain_rows(_shown(path), batch, number), start=number + 1)
        number += batch.num_rows


def _arrow_batches(path: str, role: str | None) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file or stream.

    Arrow follows the offsets in a batch without a check, and those of a damaged file lead outside its memory.
    """
    with _open_arrow(path) as reader:
        columns = _selected_columns(path, reader.schema.names, role)
        is_stream = isinstance(reader, pa.ipc.RecordBatchStreamReader)
        rows = 0
        for batch in reader if is_stream else map(reader.get_batch, range(reader.num_record_batches)):
            batch.validate(full=True)
            _refuse_large(path, batch, rows)
            rows += batch.num_rows
            yield batch if columns is None else batch.select(columns)


@contextlib.contextmanager
def _open_arrow(path: str) -> Iterator[Any]:
    is_file = files.read_raw(path, len(_ARROW_FILE)) == _ARROW_FILE
    try:
        with files.open_raw(path) as handle:
            yield pa.ipc.open_file(handle) if is_file else pa.ipc.open_stream(handle)
    except (pa.ArrowException, OSError, UnicodeDecodeError, *gcs.errors(path)) as error:
        raise InputError(f"is not a valid Arrow file: {error}", path=path) from error


def plain_rows(path: str, batch: pa.RecordBatch, line: int) -> list[dict[str, Any]]:
    """Rows as Python values; a value that Python does not represent is refused with its row."""
    with contextlib.suppress(ValueError, OverflowError):
        return plain(batch)
    rows = []
    for row in range(batch.num_rows):
        try:
            rows += plain(batch.slice(row, 1))
        except UnicodeDecodeError as error:
            raise InputError(f"a column {lines.CONVERT}", path=path, line=line + row + 1) from error
        except (ValueError, OverflowError) as error:
            raise InputError(f"a column cannot be read ({error})", path=path, line=line + row + 1) from error
    return rows


def plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as Python values; BigQuery's JSON columns, which are strings in Arrow, are parsed."""
    rows: list[dict[str, Any]] = batch.to_pylist()
    for name in _json_columns(batch):
        for row in rows:
            row[name] = None if row[name] is None else json.loads(row[name])
    return rows


def _json_columns(batch: pa.RecordBatch) -> list[str]:
    return [field.name for field in batch.schema if (field.metadata or {}).get(b"ARROW:extension:name") == _JSON]


def with_plain_json(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """Replace strings, which have quotes and escapes, and null in some columns of BigQuery's type JSON by values."""
    for name in {*names}.intersection(_json_columns(batch)):
        values = [json.loads(text) if text and text[0] in '"n' else text for text in batch[name].to_pylist()]
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, name, pa.array(values, pa.string()))
    return batch


def _with_known_names(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rename the optional columns of texts to lower case."""
    names = [name.lower() if name.lower() in _TEXTS_MORE else name for name in batch.schema.names]
    return batch if names == batch.schema.names else batch.rename_columns(names)


def _parquet_batches(path: str, role: str | None, groups: range | None, most_rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of about 16 MB. A value may have 1 GB in a file of a few KB: values above the limit of lines are refused.

    The memory for one page and one batch is not limited, if values that a dictionary repeats grow later in the file.
    """
    with open_file(path) as file:
        columns = _selected_columns(path, file.schema_arrow.names, role)
        rows = 0
        mean = _mean_bytes(file, columns, groups)
        if mean > files.LONGEST_LINE:
            raise InputError(f"rows have {mean / (1 << 20):,.0f} MiB, and a value may have {_MOST_MIB} MiB", path=path)
        try:
            most_rows = min(most_rows, _fitting(file, columns, groups), max(1, int(_BATCH_BYTES / max(mean, 1.0))))
            for batch in file.iter_batches(most_rows, groups, columns=columns, use_threads=False):
                _refuse_large(path, batch, rows)
                rows += batch.num_rows
                yield batch
        except (pa.ArrowException, OSError, *gcs.errors(path)) as error:
            raise InputError(f"row group cannot be read ({error})", path=path, line=rows + 1) from error


def _mean_bytes(file: pq.ParquetFile, columns: Sequence[str] | None, groups: range | None) -> float:
    """Mean bytes of a row in the row group where it is largest; values in a dictionary count once."""
    means, metadata = [0.0], file.metadata
    for group in range(metadata.num_row_groups) if groups is None else groups:
        rows = metadata.row_group(group)
        chunks = map(rows.column, range(metadata.num_columns))
        names = ((chunk.path_in_schema.split(".")[0], chunk.total_uncompressed_size) for chunk in chunks)
        size = sum(size for name, size in names if columns is None or name in columns)
        means.append(size / max(1, rows.num_rows))
    return max(means)


def _fitting(file: pq.ParquetFile, columns: Sequence[str] | None, groups: range | None) -> int:
    """The number of rows like the first ones that have 16 MB: an id may have 3 bytes or 1,000."""
    rows = size = 0
    for batch in file.iter_batches(_FIRST_ROWS, groups, columns=columns, use_threads=False):
        rows += batch.num_rows
        size += int(batch.get_total_buffer_size())  # pyarrow 21 to 23 have no `nbytes` of string views
        if rows >= _SAMPLE_ROWS or size >= _BATCH_BYTES:
            break
    return max(1, _BATCH_BYTES * rows // max(1, size))


def _refuse_large(path: str, batch: pa.RecordBatch, rows: int) -> None:
    """Refuse values that are larger than a line of text may be."""
    if batch.get_total_buffer_size() <= files.LONGEST_LINE:
        return
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        if (lengths := _lengths(values)) is not None:
            large = pc.fill_null(pc.greater(lengths, files.LONGEST_LINE), False)
            if (row := pc.index(large, True).as_py()) >= 0:
                problem = f"column {name} has a value of more than {_MOST_MIB} MiB"
                raise InputError(problem, path=path, line=rows + row + 1)


def _lengths(values: pa.Array) -> pa.Array | None:
    """The bytes of each text, or of the longest text in each list or struct; None for values without texts."""
    if isinstance(values, pa.DictionaryArray):
        lengths = _lengths(values.dictionary)
        return None if lengths is None else lengths.take(values.indices)
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        if (lengths := _lengths(values.flatten())) is None:
            return None
        longest = np.zeros(len(values), np.int64)
        np.maximum.at(longest, pc.list_parent_indices(values).to_numpy(), lengths.fill_null(0).to_numpy())
        return pa.array(longest)
    if isinstance(values, pa.StructArray):
        fields = [lengths for field in values.flatten() if (lengths := _lengths(field)) is not None]
        return pc.max_element_wise(*fields) if fields else None
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())  # Arrow has no lengths of views
    is_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return pc.binary_length(values) if any(test(values.type) for test in is_text) else None
