"""Part files of a text store: Parquet with a hash, a moment and a text in each row."""

import hashlib
import io
import re
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from rankbeam.transforms.clients.storage import files, whole
from rankbeam.transforms.clients.storage.whole import Stored
from rankbeam.transforms.records.errors import InputError

GROUP_BYTES, PART_BYTES = 512 << 10, 16 << 20
_PART = re.compile(r"texts-[0-9a-f]{32}\.parquet")
_DAMAGE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError)
"""Arrow's errors for damaged bytes."""
_SCHEMA = pa.schema(
    [
        pa.field("hash", pa.binary(32), nullable=False),
        pa.field("stored_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("text", pa.binary(), nullable=False),  # may hold half a surrogate pair
    ],
    {"rankbeam.texts.format": "1"},
)


@dataclass(frozen=True)
class Row:
    """A stored text.

    Attributes:
        digest: its sha256.
        stored_at: when it was first stored.
        text: as UTF-8.
    """

    digest: bytes
    stored_at: datetime
    text: bytes

    def is_whole(self) -> bool:
        """Whether it is undamaged."""
        return digest_of(self.text) == self.digest


class Damaged(Exception):
    """A part cannot be read, or was deleted; the message says why."""


def digest_of(text: bytes) -> bytes:
    """The hash that identifies a text."""
    return hashlib.sha256(text).digest()


def parts_in(folder: str) -> list[Stored]:
    """The parts of a store, sorted; none where there is no folder.

    Raises:
        InputError: the folder cannot be listed.
    """
    return [stored for stored in whole.listed(folder, "the stored texts") if _PART.fullmatch(stored.name)]


def unfinished_in(folder: str) -> list[Stored]:
    """Incomplete files: those left by killed writers, and those being written."""
    listed = whole.listed(folder, "the stored texts")
    return [
        stored
        for stored in listed
        if _PART.fullmatch(stored.name.removeprefix(whole.UNFINISHED)) and stored.name.startswith(whole.UNFINISHED)
    ]


def write(folder: str, rows: Iterable[Row]) -> Iterator[Stored]:
    """Write rows into new parts of bounded size; yields each of them.

    Raises:
        InputError: they cannot be written.
    """
    for part in _cut(rows, PART_BYTES):
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(
            sink, _SCHEMA, compression="zstd", use_dictionary=False, write_statistics=False
        ) as writer:
            for group in _cut(part, GROUP_BYTES):
                columns = ([getattr(row, name) for row in group] for name in ("digest", "stored_at", "text"))
                table = pa.table(list(map(pa.array, columns)), names=_SCHEMA.names).cast(_SCHEMA)
                writer.write_table(table, row_group_size=len(group))
        path = files.join(folder, f"texts-{uuid.uuid4().hex}.parquet")
        yield whole.put(path, sink.getvalue().to_pybytes())


class TextPart:
    """An open part.

    Attributes:
        groups: how many row groups it has.
    """

    def __init__(self, file: pq.ParquetFile) -> None:
        self._file = file
        self.groups = int(file.num_row_groups)

    def digests(self, group: int) -> list[bytes]:
        """The hashes of a row group, without its texts."""
        digests: list[bytes] = self._read(group, ["hash"]).column("hash").to_pylist()
        return digests

    def rows(self, group: int) -> list[Row]:
        """The rows of a row group."""
        table = self._read(group, _SCHEMA.names)
        return [
            Row(*values) for values in zip(*(table.column(name).to_pylist() for name in _SCHEMA.names), strict=True)
        ]

    def _read(self, group: int, columns: list[str]) -> pa.Table:
        table = self._file.read_row_group(group, columns=columns, use_threads=False)
        table.validate(full=True)
        return table


@contextmanager
def reading(path: str) -> Iterator[TextPart]:
    """Open a part by column name: one with further columns is read.

    Raises:
        Damaged: the file is cut short, deleted, altered, or not a part.
    """
    try:
        handle = files.open_raw(path)
    except (BeamIOError, OSError, InputError) as error:
        raise Damaged(str(error)) from error
    with handle, _parsing(handle) as part:
        yield part


@contextmanager
def _parsing(handle: BinaryIO) -> Iterator[TextPart]:
    try:
        file = pq.ParquetFile(handle)
        try:
            yield TextPart(file)
        finally:
            file.close(force=True)
    except _DAMAGE as error:
        raise Damaged(f"cut short or damaged ({' '.join(str(error).split())})") from error


def salvaged(path: str) -> list[Row]:
    """The undamaged rows of a damaged part.

    Raises:
        Damaged: its bytes cannot be read now, whatever their state.
    """
    rows: list[Row] = []
    try:
        with files.open_raw(path) as handle:
            content = handle.read()
    except (BeamIOError, OSError, InputError) as error:
        raise Damaged(str(error)) from error
    with suppress(Damaged), _parsing(io.BytesIO(content)) as part:
        for group in range(part.groups):
            with suppress(*_DAMAGE):
                rows += [row for row in part.rows(group) if row.is_whole()]
    return rows


def is_gone(path: str) -> bool:
    """Whether the part was deleted, as far as its filesystem knows."""
    try:
        return not FileSystems.exists(path)
    except (BeamIOError, OSError):
        return False


def _cut(rows: Iterable[Row], most_bytes: int) -> Iterator[list[Row]]:
    """Pieces of at least one row each."""
    piece: list[Row] = []
    held = 0
    for row in rows:
        if piece and held + len(row.text) > most_bytes:
            yield piece
            piece, held = [], 0
        piece.append(row)
        held += len(row.text)
    if piece:
        yield piece
