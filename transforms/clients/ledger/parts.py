"""Part files of the ledger: finished calls as Parquet, whose every page and every row proves that it is undamaged.

Whatever cannot be read is left out, with the reason: a part that was torn or altered, or another program's. Pages have
checksums, but not their heads, nor the end of a file: each row has its own hash as well.
"""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from rankbeam.transforms.clients.storage.json_values import value_of
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.calls.reach import Reach
from rankbeam.transforms.records.errors import InputError

SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("results", pa.int64(), nullable=False),
        pa.field("distance", pa.float64()),
        pa.field("attempts", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("finished_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("answer", pa.binary(), nullable=False),  # a JSON text may hold half a surrogate pair, a string not
        pa.field("check", pa.uint64(), nullable=False),
    ]
)
GROUP_ROWS, GROUP_BYTES = 512, 8 << 20
IMPOSSIBLE = "rows with values that cannot be"
_LAST_MOMENT = 253_402_300_799_999_999
"""The end of the year 9999, in microseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Entry:
    """A finished call.

    Attributes:
        key: what was asked, as `content_key` says it.
        reach: how far into a ranking.
        answer: what `Connection.call` returned, JSON.
        attempts: how often it was tried.
        seconds: that all attempts took, without pauses.
        finished_at: when it was answered, in UTC.
    """

    key: str
    reach: Reach
    answer: str
    attempts: int
    seconds: float
    finished_at: datetime


class PartError(Exception):
    """A part, or a piece of it, that cannot be used; the message says why."""


class Vanished(PartError):
    """There is no such file any more: its writer has merged it into another one, or somebody cleared the ledger."""


class Encoder:
    """Makes the bytes of one part."""

    def __init__(self) -> None:
        self._sink = pa.BufferOutputStream()
        # Nearly every value is different: dictionaries and statistics would only take room.
        self._writer = pq.ParquetWriter(
            self._sink,
            SCHEMA,
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
        )
        self._waiting: list[pa.Table] = []

    def add(self, rows: pa.Table) -> None:
        """Add rows, not more than make one row group; few are put into one with those that come next."""
        together = [*self._waiting, rows]
        if sum(table.num_rows for table in together) > GROUP_ROWS or sum(map(_bytes, together)) > GROUP_BYTES:
            self._end_group()
        self._waiting.append(rows)

    def finish(self) -> pa.Buffer:
        """The whole part."""
        self._end_group()
        self._writer.close()
        return self._sink.getvalue()

    def _end_group(self) -> None:
        rows = pa.concat_tables([SCHEMA.empty_table(), *self._waiting]).combine_chunks()
        if rows.num_rows:
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._waiting = []


class ForeignPart(PartError):
    """A whole Parquet file, but of another program."""


class PartReader:
    """An open part. Every method raises PartError for what cannot be read.

    Args:
        path: of the part.

    Attributes:
        groups: how many row groups it has.
        is_plain: whether it has no columns but those that are known here. Others are not read.

    Raises:
        Vanished: there is none.
        PartError: it is no part, or cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = self._open()
        self.groups = int(self._file.num_row_groups)

    def __enter__(self) -> "PartReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close(force=True)

    def rows(self, group: int, columns: list[str] | None = None) -> pa.Table:
        """Some columns of a row group, all that are known by default."""
        try:
            table = self._file.read_row_group(group, columns=columns or SCHEMA.names, use_threads=False)
            table.validate(full=True)
            return table
        except Exception as error:  # whatever a filesystem's client or a decoder of damaged bytes has to say
            raise _why_not(self.path, error) from error

    def entries(self, group: int, rows: Iterable[int]) -> list[Entry | None]:
        """Some rows of a row group; None for one that is not as it was written."""
        table = self.rows(group).take(pa.array(list(rows), pa.int64()))
        possible = are_possible(table)
        told = _told(table.filter(possible))
        return [_entry(*next(told)) if can_be else None for can_be in possible.to_pylist()]

    def _open(self) -> pq.ParquetFile:
        handle: BinaryIO | None = None
        try:
            handle = files.open_raw(self.path)
            file = pq.ParquetFile(handle, page_checksum_verification=True)
            schema = file.schema_arrow
            ours = all(field.name in schema.names and schema.field(field.name).equals(field) for field in SCHEMA)
            self.is_plain = schema.equals(SCHEMA, check_metadata=False)
        except Exception as error:  # as above
            if handle is not None:
                handle.close()
            raise _why_not(self.path, error) from error
        if not ours:
            file.close(force=True)
            raise ForeignPart("another program's Parquet file: its columns are not the ledger's")
        return file


def table_of(entries: Iterable[Entry]) -> pa.Table:
    """Entries as rows of a part."""
    return pa.Table.from_pylist([_row(entry) for entry in entries], schema=SCHEMA)


def row_groups(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Entries in pieces that are cheap to read for the sake of one of them."""
    group: list[Entry] = []
    held = 0
    for entry in entries:
        if group and (len(group) >= GROUP_ROWS or held + len(entry.answer) > GROUP_BYTES):
            yield group
            group, held = [], 0
        group.append(entry)
        held += len(entry.answer)
    if group:
        yield group


def are_possible(rows: pa.Table) -> pa.ChunkedArray:
    """For each row whether its values can be, as far as these columns are there."""
    moments = pc.cast(rows.column("finished_at"), pa.int64())
    tests = [pc.is_valid(rows.column("key")), pc.greater_equal(moments, 0), pc.less_equal(moments, _LAST_MOMENT)]
    amounts = {"results", "attempts", "seconds"} & set(rows.column_names)
    tests += [pc.greater_equal(rows.column(name), 0) for name in amounts]  # what is not a number is not ≥ 0 either
    possible = functools.reduce(pc.and_kleene, tests)
    if "distance" in rows.column_names:
        possible = pc.and_not(possible, pc.fill_null(pc.is_nan(rows.column("distance")), False))
    return pc.fill_null(possible, False)


def _why_not(path: str, error: Exception) -> PartError:
    try:
        if not FileSystems.exists(path):
            return Vanished("is gone")
    except (BeamIOError, OSError):
        pass  # then the first error says more
    if isinstance(error, InputError):
        return PartError(error.problem)
    return PartError(f"cut short or damaged ({' '.join(str(error).split())})")


def _bytes(table: pa.Table) -> int:
    return int(table.nbytes)


def _row(entry: Entry) -> dict[str, Any]:
    distance = entry.reach.distance
    told = (
        entry.key,
        int(entry.reach.results),
        None if distance is None else float(distance),
        int(entry.attempts),
        float(entry.seconds),
        entry.finished_at.astimezone(UTC),
        entry.answer.encode("utf-8", "surrogatepass"),
    )
    return dict(zip(SCHEMA.names, (*told, _check(*told)), strict=True))


def _told(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The values of rows, in the order of the schema. Arrow makes moments with a time zone slowly."""
    moments = pc.cast(rows.column("finished_at"), pa.int64()).to_pylist()
    columns = {name: rows.column(name).to_pylist() for name in SCHEMA.names if name != "finished_at"}
    columns["finished_at"] = [_EPOCH + timedelta(microseconds=moment) for moment in moments]
    return zip(*(columns[name] for name in SCHEMA.names), strict=True)


def _entry(
    key: str,
    results: int,
    distance: float | None,
    attempts: int,
    seconds: float,
    finished_at: datetime,
    answer: bytes,
    check: int,
) -> Entry | None:
    """What a row says; None where it does not say what was written."""
    try:
        if check != _check(key, results, distance, attempts, seconds, finished_at, answer):
            return None
        value_of(answer)
        said = answer.decode("utf-8", "surrogatepass")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return Entry(key, Reach(results, distance), said, attempts, seconds, finished_at)


def _check(
    key: str,
    results: int,
    distance: float | None,
    attempts: int,
    seconds: float,
    finished_at: datetime,
    answer: bytes,
) -> int:
    """A hash of all columns."""
    told = (key, results, distance, attempts, seconds)
    digest = blake2b(f"{told!r} {finished_at.isoformat()} ".encode("utf-8", "surrogatepass"), digest_size=8)
    digest.update(answer)
    return int.from_bytes(digest.digest(), "big")
