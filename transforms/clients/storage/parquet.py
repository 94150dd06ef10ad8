"""Parquet files on any filesystem: open them by path, and write them as parts of a table.

Parts have temporary names, and are moved into place once all are complete.
"""

import uuid
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.storage import files, gcs
from rankbeam.transforms.records.errors import InputError

MAGIC = b"PAR1"  # first bytes of a Parquet file
_STREAM_BYTES = 1 << 20
_AT_ONCE = 16
_GROUP_ROWS, _GROUP_BYTES = 30_720, 32 << 20
"""The size of a row group: DuckDB's, so that its threads copy whole groups; fewer rows if rows are large.

DuckDB reads up to 2,048 rows of a group at once, whatever their size.
"""
_UNFINISHED = "_unfinished"  # readers of a folder of Parquet files skip names with this prefix


def run_folder(output: str, table: str, run_id: str) -> str:
    """The folder with one run's rows in a table.

    >>> run_folder("out", "runs", "r1")
    'out/runs/r1'
    """
    return files.join(output, table, run_id)


@contextmanager
def open_file(path: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file on any filesystem, and close it at the end of the block.

    Arrow's threads may hold the reader longer than this block. The last thread to release an open file takes Python's
    lock to free its object; during the interpreter's shutdown that ends the process with SIGABRT.
    """
    # If seeking is free, read page by page; otherwise read each column of a row group in one request. With Arrow's
    # default, the bytes of all row groups would be in memory at once.
    buffer_size = _STREAM_BYTES if files.is_local(path) else 0
    try:
        file = pq.ParquetFile(_handle(path), buffer_size=buffer_size, pre_buffer=False)
    except (pa.ArrowException, OSError, UnicodeDecodeError, *gcs.errors(path)) as error:
        raise InputError(f"the Parquet file is cut short or damaged ({error}); copy it again", path=path) from error
    try:
        yield file
    finally:
        file.close(force=True)


def _handle(path: str) -> BinaryIO | pa.NativeFile:
    """Open a file for Arrow; a local file is opened by Arrow itself.

    Reading a page of a Python file needs the interpreter's lock, and while another thread imports modules, that takes
    long.
    """
    handle = files.open_raw(path)
    if not files.is_local(path):
        return handle
    handle.close()  # it was only opened for its error messages
    return pa.OSFile(path)


class Part:
    """A Parquet file that is being written, in a subfolder for unfinished files."""

    def __init__(self, folder: str, schema: pa.Schema) -> None:
        self._path = files.join(folder, _UNFINISHED, f"{uuid.uuid4().hex}.parquet")
        try:
            if files.is_local(folder):
                Path(self._path).parent.mkdir(parents=True, exist_ok=True)
            self._handle = files.beam().create(self._path, compression_type=files.AS_STORED)
        except files.errors(folder) as error:
            raise InputError(f"cannot be written: {gcs.error_text(error, folder)}", path=self._path) from error
        self._writer, self._schema = pq.ParquetWriter(self._handle, schema, compression="zstd"), schema
        self._forget = weakref.finalize(self, _forget, self._handle, self._writer)
        self._waiting: list[pa.Table] = []
        self._rows = self._bytes = 0

    def write(self, rows: pa.Table) -> None:
        """Add rows with exactly the table's schema; they may wait for more rows to fill a row group."""
        if not rows.schema.equals(self._schema):
            raise ValueError(f"the schema of the rows is not the table's: {rows.schema}")
        self._wait(rows)
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._write_first(self._rows // _GROUP_ROWS * _GROUP_ROWS or self._rows)

    def close(self) -> str:
        """Complete the file; return its path."""
        self._write_first(self._rows)
        self._writer.close()
        self._handle.close()
        self._forget.detach()
        return self._path

    def _wait(self, rows: pa.Table) -> None:
        self._waiting.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes

    def _write_first(self, count: int) -> None:
        if count:
            rows = pa.concat_tables(self._waiting)
            of_bytes = max(1, _GROUP_BYTES * self._rows // max(1, self._bytes))
            self._writer.write_table(rows.slice(0, count), min(_GROUP_ROWS, of_bytes))
            self._waiting, self._rows, self._bytes = [], 0, 0
            self._wait(rows.slice(count))


def _forget(handle: Any, writer: pq.ParquetWriter) -> None:
    writer.is_open = False
    files.give_up(handle)


def _move(part: str, place: str) -> None:
    if files.beam().exists(part):
        files.beam().rename([part], [place])
    elif not files.beam().exists(place):
        raise InputError("was deleted during the run; start the run again", path=part)


def put_in_place(folder: str, parts: list[str], schema: pa.Schema) -> list[str]:
    """Move complete parts into a table's folder, even if an earlier call was interrupted; return the new paths."""
    parts = sorted(parts) or [Part(folder, schema).close()]
    places = [files.join(folder, f"part-{number:05}-of-{len(parts):05}.parquet") for number in range(len(parts))]
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # in a bucket, a move takes several requests
        list(pool.map(_move, parts, places))
    files.delete(files.join(folder, _UNFINISHED))
    return places


def refuse_incomplete(paths: Sequence[str]) -> None:
    """Refuse the files of a table if they are not as many as `put_in_place` named, as after an interrupted copy."""
    number = paths[-1].rpartition("-of-")[2].removesuffix(".parquet") if paths else ""
    if number.isdecimal() and len(paths) != int(number):
        problem = f"has {len(paths):,} files, and their names say {int(number):,}; copy the folder again"
        raise InputError(problem, path=files.parent(paths[-1]))
