"""Part files of the ledger: finished calls as Parquet, with a checksum for every page and every row.

Unreadable content is left out and the reason reported: a part was cut short or altered, or is another program's. Page
checksums cover neither page headers nor the end of a file, so each row has its own hash as well.
"""

from collections.abc import Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.transforms.clients.ledger.rows import (
    GROUP_BYTES,
    GROUP_ROWS,
    WRITTEN,
    LedgerEntry,
    PartLayout,
    StoredRow,
    entry_of,
    row_groups,
    stored_in,
    table_of,
)
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError


class PartError(Exception):
    """A part, or a piece of it, cannot be used; the message states the reason."""


class PartVanished(PartError):
    """The file was deleted because it was merged into another part, or the ledger was cleared."""


class ForeignPart(PartError):
    """A complete Parquet file of another program."""


class Encoder:
    """Makes the bytes of one part."""

    def __init__(self, layout: PartLayout = WRITTEN) -> None:
        self._layout = layout
        self._sink = pa.BufferOutputStream()
        # Nearly every value is different, so dictionaries and statistics would only take space.
        self._writer = pq.ParquetWriter(
            self._sink,
            layout.schema,
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
        )
        self._waiting: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Add rows, at most a row group; small additions share a row group with the next ones."""
        tables = [*self._waiting, table]
        rows, size = sum(piece.num_rows for piece in tables), sum(piece.nbytes for piece in tables)
        if rows > GROUP_ROWS or size > GROUP_BYTES:
            self._end_group()
        self._waiting.append(self._layout.align_columns(table))

    def finish(self) -> pa.Buffer:
        self._end_group()
        self._writer.close()
        return self._sink.getvalue()

    def _end_group(self) -> None:
        table = pa.concat_tables([self._layout.schema.empty_table(), *self._waiting]).combine_chunks()
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._waiting = []


def encode_entries(entries: Sequence[LedgerEntry]) -> pa.Buffer:
    encoder = Encoder()
    for group in row_groups(entries):
        encoder.add(table_of(group))
    return encoder.finish()


class PartReader:
    """An open part. Every method raises PartError for unreadable content."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = self._open()
        self.groups = int(self._file.num_row_groups)

    def __enter__(self) -> "PartReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close(force=True)

    def rows(self, group: int, columns: list[str] | None = None) -> pa.Table:
        """The rows of a row group, with these columns, by default all."""
        try:
            table = self._file.read_row_group(group, columns=columns, use_threads=False)
            table.validate(full=True)
            return table
        except Exception as error:  # filesystem clients, and decoders of damaged bytes, raise errors of any class
            raise _why_not(self.path, error) from error

    def entries(self, group: int, numbers: list[int]) -> list[LedgerEntry | None]:
        """Some rows of a row group, by number; None for a damaged row."""
        return list(map(entry_of, self.stored(group, numbers)))

    def stored(self, group: int, numbers: list[int]) -> list[StoredRow | None]:
        """Some stored rows of a row group, by number; None for a row whose hash does not match."""
        table = self.rows(group, self.layout.read)
        if numbers != list(range(table.num_rows)):
            table = table.take(pa.array(numbers, pa.int64()))
        return stored_in(table, self.layout.checked)

    def _open(self) -> pq.ParquetFile:
        handle: BinaryIO | None = None
        try:
            handle = files.open_raw(self.path)
            file = pq.ParquetFile(handle, page_checksum_verification=True)
            self.layout = PartLayout(file.schema_arrow)
            is_ours = self.layout.is_ours()
        except Exception as error:  # as above
            if handle is not None:
                handle.close()
            raise _why_not(self.path, error) from error
        if not is_ours:
            file.close(force=True)
            raise ForeignPart("another program's Parquet file: its columns are not the ledger's")
        return file


def _why_not(path: str, error: Exception) -> PartError:
    try:
        if not files.exists(path):
            return PartVanished("is gone")
    except (InputError, OSError):
        pass  # then the first error is more informative
    if isinstance(error, InputError):
        return PartError(error.problem)
    return PartError(f"cut short or damaged ({' '.join(str(error).split())})")
