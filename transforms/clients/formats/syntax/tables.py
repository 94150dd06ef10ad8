"""BigQuery tables, Arrow and Parquet files, with the same roles, column names and types.

As in BigQuery, the case of a table's column names is ignored.
"""

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.bigquery import read
from rankbeam.transforms.clients.bigquery.names import TableSource, is_table
from rankbeam.transforms.clients.formats.syntax import lines, named_columns
from rankbeam.transforms.clients.storage import files, gcs
from rankbeam.transforms.clients.storage.parquet import open_file
from rankbeam.transforms.records.errors import InputError

_ARROW_FILE = b"ARROW1"
ARROW = (_ARROW_FILE, b"\xff\xff\xff\xff")
"""First bytes of an Arrow file, and of an Arrow stream, as Hugging Face saves datasets."""
_JSON = b"google:sqlType:json"
_TEXTS_MORE = ("title", "metadata")  # optional columns that `texts` reads
_BATCH_ROWS, _BATCH_BYTES = 1 << 18, 16 << 20
_SAMPLE_ROWS = 1 << 10


def check(path: str, role: str) -> None:
    """Refuse a table without the columns of its role; no rows are read."""
    source = TableSource.parse(path)
    _find_columns(source, read.describe(source).columns, role)


def attributes_of_queries(path: str) -> set[str] | None:
    """The columns of a table that are attributes of queries; None if `metadata` may have more."""
    source = TableSource.parse(path)
    columns = read.describe(source).columns
    others = set(columns) - set(_find_columns(source, columns, "queries").values())
    further = {name for name in others if name.lower() in _TEXTS_MORE}
    return None if "metadata" in map(str.lower, further) else others - further


def streams(path: str, role: str) -> Iterator[str]:
    """Open a read session; yield the paths of its streams, at least one, which can be read like files."""
    source = TableSource.parse(path)
    columns = _selected_columns(source, role) if role in named_columns.COLUMN_NAMES else []
    yield from (stream.path for stream in read.streams(source, columns))


def read_rows(path: str, role: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read a role's columns from an Arrow file, a table, or one of its streams, and cast them to a schema."""
    for names, batches in named_batches(path, role):
        yield from named_columns.map_columns(_shown(path), batches, names, schema)


def named_batches(path: str, role: str) -> Iterator[tuple[Mapping[str, str], Iterator[pa.RecordBatch]]]:
    """The names of a role's columns, by our names, and the batches; yields nothing for a table without batches."""
    if is_table(path):
        source = TableSource.parse(path)
        batches = read.batches(source, [] if source.stream is not None else _selected_columns(source, role))
    else:
        batches = arrow_batches(path)
    if (first := next(batches, None)) is not None:
        names = named_columns.find_columns(_shown(path), first.schema.names, role, any_case=is_table(path))
        plain_batches = (with_plain_json(batch, names.values()) for batch in chain([first], batches))
        yield names, map(_with_known_names, plain_batches)


def _shown(path: str) -> str:
    return str(TableSource.parse(path)) if is_table(path) else path


def arrow_batches(path: str) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file or stream.

    Arrow follows the offsets in a batch without a check, and those of a damaged file lead outside its memory.
    """
    with _open_arrow(path) as reader:
        is_stream = isinstance(reader, pa.ipc.RecordBatchStreamReader)
        for batch in reader if is_stream else map(reader.get_batch, range(reader.num_record_batches)):
            batch.validate(full=True)
            yield batch


@contextlib.contextmanager
def _open_arrow(path: str) -> Iterator[Any]:
    is_file = files.read_raw(path, len(_ARROW_FILE)) == _ARROW_FILE
    try:
        with files.open_raw(path) as handle:
            yield pa.ipc.open_file(handle) if is_file else pa.ipc.open_stream(handle)
    except (pa.ArrowException, OSError, UnicodeDecodeError, *gcs.errors(path)) as error:
        raise InputError(f"is not a valid Arrow file: {error}", path=path) from error


def arrow_columns(path: str) -> list[str]:
    with _open_arrow(path) as reader:
        return list(reader.schema.names)


def check_arrow(path: str, role: str) -> None:
    named_columns.find_columns(path, arrow_columns(path), role)


def arrow_has_rows(path: str) -> bool:
    return any(batch.num_rows for batch in arrow_batches(path))


def column(source: TableSource, role: str, name: str) -> str:
    """The table's own name for a column; `name` is a key of `named.COLUMN_NAMES[role]`."""
    return _find_columns(source, read.describe(source).columns, role)[name]


def plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as Python values; BigQuery's JSON columns, which are strings in Arrow, are parsed."""
    rows: list[dict[str, Any]] = batch.to_pylist()
    for name in _json_columns(batch):
        for row in rows:
            row[name] = None if row[name] is None else json.loads(row[name])
    return rows


def plain_rows(path: str, batch: pa.RecordBatch, line: int) -> list[dict[str, Any]]:
    """Rows as `plain` makes them; a value that Python does not represent is refused with its row."""
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


def _json_columns(batch: pa.RecordBatch) -> list[str]:
    return [field.name for field in batch.schema if (field.metadata or {}).get(b"ARROW:extension:name") == _JSON]


def with_plain_json(batch: pa.RecordBatch, names: Collection[str]) -> pa.RecordBatch:
    """Replace strings, which have quotes and escapes, and null in some columns of BigQuery's type JSON by values."""
    for name in {*names}.intersection(_json_columns(batch)):
        values = [json.loads(text) if text and text[0] in '"n' else text for text in batch[name].to_pylist()]
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, name, pa.array(values, pa.string()))
    return batch


def _selected_columns(source: TableSource, role: str) -> list[str]:
    """The columns to read; for texts an empty list, which means all: their other columns are attributes."""
    names = _find_columns(source, read.describe(source).columns, role)
    return [] if named_columns.COLUMN_NAMES[role] is named_columns.TEXTS else list(names.values())


def _find_columns(source: TableSource, columns: Sequence[str], role: str) -> dict[str, str]:
    return named_columns.find_columns(str(source), columns, role, any_case=True)


def _with_known_names(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rename the optional columns of texts to lower case."""
    names = [name.lower() if name.lower() in _TEXTS_MORE else name for name in batch.schema.names]
    return batch if names == batch.schema.names else batch.rename_columns(names)


def read_parquet(path: str, role: str, schema: pa.Schema, groups: range | None = None) -> Iterator[pa.RecordBatch]:
    with open_file(path) as file:
        names = named_columns.find_columns(path, file.schema_arrow.names, role)
        chosen, rows = list(names.values()), 0
        try:
            size = _batch_rows(file, chosen)
            batches = file.iter_batches(size, groups, columns=chosen, use_threads=False)
            for batch in named_columns.map_columns(path, batches, names, schema):
                rows += batch.num_rows
                yield batch
        except (pa.ArrowException, OSError, *gcs.errors(path)) as error:
            raise InputError(f"row group cannot be read ({error})", path=path, line=rows + 1) from error


def read_parquet_values(path: str, role: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read a role's columns from a Parquet file, with the optional ones that it has, as Python values."""
    with open_file(path) as file:
        names = named_columns.find_columns(path, file.schema_arrow.names, role)
        for row, values in parquet_rows(path, file, list(names.values())):
            yield row, {ours: values[theirs] for ours, theirs in names.items()}


def parquet_rows(
    path: str, file: pq.ParquetFile, columns: Sequence[str] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    row = 0
    try:
        for batch in file.iter_batches(_SAMPLE_ROWS, columns=columns, use_threads=False):
            for values in plain_rows(path, batch, row):
                row += 1
                yield row, values
    except (pa.ArrowException, OSError, *gcs.errors(path)) as error:
        raise InputError(f"row group cannot be read ({error})", path=path, line=row + 1) from error


def check_parquet(path: str, role: str) -> None:
    with open_file(path) as file:
        named_columns.find_columns(path, file.schema_arrow.names, role)


def parquet_has_rows(path: str) -> bool:
    with open_file(path) as file:
        return bool(file.metadata.num_rows)


def _batch_rows(file: pq.ParquetFile, names: Sequence[str]) -> int:
    """The number of rows to read at once, based on the size of the first ones: an id may have 3 bytes or 1,000."""
    first = next(file.iter_batches(batch_size=_SAMPLE_ROWS, columns=names, use_threads=False), None)
    if first is None or first.num_rows == 0:
        return _BATCH_ROWS
    size = int(first.get_total_buffer_size())  # pyarrow 21 to 23 have no `nbytes` of string views
    fitting = _BATCH_BYTES * int(first.num_rows) // max(1, size)
    return max(_SAMPLE_ROWS, min(_BATCH_ROWS, fitting))
