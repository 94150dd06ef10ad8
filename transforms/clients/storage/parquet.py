"""Parquet files, opened by path on any filesystem."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.storage import files, gcs
from rankbeam.transforms.records.errors import InputError

_STREAM_BYTES = 1 << 20


@contextmanager
def open_file(path: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file on any filesystem, and close it at the end of the block.

    Arrow's threads may hold the reader longer than this block. The last thread to release an open file takes Python's
    lock to free its object; during the interpreter's shutdown that ends the process with SIGABRT.
    """
    # Page by page where seeking is free; elsewhere each column of a row group in one request. Arrow's default would
    # hold the bytes of all row groups at once.
    buffer_size = _STREAM_BYTES if files.is_local(path) else 0
    try:
        file = pq.ParquetFile(_handle(path), buffer_size=buffer_size, pre_buffer=False)
    except (pa.ArrowInvalid, OSError, *gcs.errors(path)) as error:
        raise InputError(f"the Parquet file is cut short or damaged ({error}); copy it again", path=path) from error
    try:
        yield file
    finally:
        file.close(force=True)


def _handle(path: str) -> BinaryIO | pa.NativeFile:
    """A file for Arrow; a local one is Arrow's own.

    Every page of a Python file is read under the interpreter's lock, for which a reader waits long while another thread
    imports modules.
    """
    handle = files.open_raw(path)
    if not files.is_local(path):
        return handle
    handle.close()  # it was opened for its messages
    return pa.OSFile(path)
