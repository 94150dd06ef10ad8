"""Finished calls as rows of a part: its columns by format, and the metadata that describe them.

Each row has its own hash: a damaged row is left out. The first release wrote format 1. Format 2 adds columns that may
be null. A part of any format is read by column name: the columns of format 1 are always present, others are read if the
part has them, and an unknown column is kept when parts are merged and otherwise ignored.

A part names the columns that `check`, the hash of each row, covers in addition to those of format 1; null values are
left out. So one part may hold rows of several formats, a later format's hash can cover columns that are unknown here,
and a column that another program has added is ignored. The first release treats a part with more columns as another
program's: it neither reads nor removes the part, and pays for those answers again.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.storage.json_paths import refuse_invalid
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.reply import NO_TOKENS, Tokens

FORMAT = 2
FIRST = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("results", pa.int64(), nullable=False),  # 0, without a distance, if the answer is complete
        pa.field("distance", pa.float64()),
        pa.field("attempts", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("finished_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("answer", pa.binary(), nullable=False),  # JSON text may contain half a surrogate pair, a string not
        pa.field("check", pa.uint64(), nullable=False),
    ]
)
"""The columns of format 1."""
ADDED = pa.schema(
    [
        pa.field("input_tokens", pa.int64()),
        pa.field("cached_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("service", pa.string()),
        pa.field("via", pa.string()),  # the transport of the call; null for a separate request
    ]
)
"""The columns that format 2 adds."""
_VERSION, _CHECKED = b"rankbeam.ledger.format", b"rankbeam.ledger.checked"
SCHEMA = pa.schema([*FIRST, *ADDED], {_VERSION: str(FORMAT), _CHECKED: " ".join(ADDED.names)})
"""The columns of the current format, and its metadata."""


@dataclass(frozen=True)
class PartLayout:
    """The columns of a part."""

    schema: pa.Schema

    @property
    def version(self) -> int:
        """The number of the format; 1 if the part does not state it."""
        number = self._metadata().get(_VERSION, b"1")
        return int(number) if number.isdigit() else 1

    @property
    def checked(self) -> list[str]:
        """The columns beyond format 1 that each row's hash covers, sorted."""
        names = self._metadata().get(_CHECKED, b"").decode("utf-8", "replace").split()
        return sorted(set(names) & set(self.schema.names) - set(FIRST.names))

    @property
    def read(self) -> list[str]:
        """The columns of an entry, including its hash."""
        return [*FIRST.names, *self.checked]

    def is_ours(self) -> bool:
        known = [*FIRST, *(ADDED.field(name) for name in self.checked if name in ADDED.names)]
        return all(field.name in self.schema.names and self.schema.field(field.name).equals(field) for field in known)

    def joined(self, other: "PartLayout") -> "PartLayout | None":
        """The columns and metadata of both; None if they contradict each other.

        A column's types may differ, the hashes of only one of them may cover a column, and metadata that are not the
        ledger's own may disagree.
        """
        ours, theirs = self._metadata(), other._metadata()
        own_metadata = {_VERSION: str(max(self.version, other.version)).encode()}
        own_metadata[_CHECKED] = " ".join(sorted({*self.checked, *other.checked})).encode()
        shared = set(self.schema.names) & set(other.schema.names)
        if any((name in self.checked) != (name in other.checked) for name in shared - set(FIRST.names)):
            return None
        if any(ours[name] != theirs[name] for name in set(ours) & set(theirs) - set(own_metadata)):
            return None
        fields = {field.name: field for field in (*other.schema, *self.schema)}
        if any(other.schema.field(name).type != fields[name].type for name in shared):
            return None
        names = dict.fromkeys([*self.schema.names, *other.schema.names])
        fields_joined = [fields[name] if name in FIRST.names else fields[name].with_nullable(True) for name in names]
        return PartLayout(pa.schema(fields_joined, {**ours, **theirs, **own_metadata}))

    def align_columns(self, rows: pa.Table) -> pa.Table:
        """Rows of a layout that was `joined` to this one, with all columns of this layout."""
        columns = [
            rows.column(field.name) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
            for field in self.schema
        ]
        return pa.table(columns, schema=self.schema)

    def _metadata(self) -> dict[bytes, bytes]:
        return dict(self.schema.metadata or {})


WRITTEN = PartLayout(SCHEMA)  # the layout of parts written by this version


GROUP_ROWS, GROUP_BYTES = 512, 8 << 20
BATCH = "batch"  # the transport of calls that a batch job makes
WHOLE = SearchDepth(0)  # the stored depth of a complete answer
IMPOSSIBLE = "rows with impossible values"
_TOKENS = ("input_tokens", "cached_tokens", "output_tokens")
_LAST_MOMENT = 253_402_300_799_999_999  # the end of the year 9999, in microseconds
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BASE = [name for name in FIRST.names if name != "check"]


@dataclass(frozen=True)
class LedgerEntry:
    """A finished call."""

    key: str
    depth: SearchDepth | None  # None for a complete answer
    answer: str
    attempts: int
    seconds: float
    finished_at: datetime  # when the call was answered, in UTC
    tokens: Tokens = Tokens()  # noqa: RUF009  it is immutable
    service: str = ""
    via: str = ""  # `BATCH` for the answer of a batch job; "" for that of a separate request


class StoredRow(NamedTuple):
    """A row whose hash matches."""

    base: tuple[Any, ...]  # values of the columns of format 1, without the hash; moments in microseconds
    further: dict[str, Any]

    def answers(self, key: str, depth: SearchDepth | None) -> bool:
        """Return whether the row is of the call with this key, and goes deep enough."""
        return self.base[0] == key and covers(self.base[1], self.base[2], depth)

    @property
    def answer(self) -> bytes:
        answer: bytes = self.base[-1]
        return answer

    @property
    def attempts(self) -> int:
        attempts: int = self.base[3]
        return attempts

    @property
    def tokens(self) -> Tokens:
        if "input_tokens" not in self.further:
            return NO_TOKENS
        tokens = Tokens(*(self.further.get(name, 0) for name in _TOKENS))
        return tokens.in_batch() if self.further.get("via") == BATCH else tokens


def table_of(entries: Iterable[LedgerEntry]) -> pa.Table:
    return pa.Table.from_pylist([_row(entry) for entry in entries], schema=SCHEMA)


def covers(results: int, distance: float | None, depth: SearchDepth | None) -> bool:
    """Return whether an answer that goes this deep into a ranking answers a call."""
    stored = _depth(results, None if distance != distance else distance)
    return stored == WHOLE if depth is None else stored.covers(depth)


@functools.lru_cache(maxsize=64)
def _depth(results: int, distance: float | None) -> SearchDepth:
    return SearchDepth(results, distance)


def row_groups(entries: Iterable[LedgerEntry]) -> Iterator[list[LedgerEntry]]:
    """Split entries into row groups small enough to be read for a single entry."""
    group: list[LedgerEntry] = []
    size = 0
    for entry in entries:
        if group and (len(group) >= GROUP_ROWS or size + len(entry.answer) > GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(entry)
        size += len(entry.answer)
    if group:
        yield group


def are_possible(rows: pa.Table) -> pa.ChunkedArray:
    """For each row, whether its values are possible, as far as the columns are present."""
    moments = pc.cast(rows.column("finished_at"), pa.int64())
    tests = [pc.is_valid(rows.column("key")), pc.greater_equal(moments, 0), pc.less_equal(moments, _LAST_MOMENT)]
    amounts = {"results", "attempts", "seconds"} & set(rows.column_names)
    tests += [pc.greater_equal(rows.column(name), 0) for name in amounts]  # False for NaN as well
    possible = functools.reduce(pc.and_kleene, tests)
    if "distance" in rows.column_names:
        possible = pc.and_not(possible, pc.fill_null(pc.is_nan(rows.column("distance")), False))
    return pc.fill_null(possible, False)


def stored_in(rows: pa.Table, checked: Sequence[str]) -> list[StoredRow | None]:
    """The stored rows; None for a row with impossible values, or whose hash does not match."""
    possible = are_possible(rows)
    are_all = pc.all(possible).as_py()
    filtered = rows if are_all else rows.filter(possible)
    further = _further(filtered, [name for name in checked if filtered.column(name).null_count < filtered.num_rows])
    moments = filtered.column("finished_at").cast(pa.int64())
    stored = list(
        map(
            _stored_row,
            _base(filtered, moments),
            _format_moments(moments),
            further,
            filtered.column("check").to_pylist(),
        )
    )
    if are_all:
        return stored
    possible_rows = iter(stored)
    return [next(possible_rows) if is_possible else None for is_possible in possible.to_pylist()]


def entry_of(stored: StoredRow | None) -> LedgerEntry | None:
    """The entry of a row; None if it is damaged, or its answer is not JSON."""
    if stored is None:
        return None
    key, results, distance, attempts, seconds, moment, answer = stored.base
    try:
        refuse_invalid(answer)
        text = answer.decode("utf-8", "surrogatepass")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    depth = SearchDepth(results, distance)
    service, via = stored.further.get("service", ""), stored.further.get("via", "")
    entry_depth, finished_at = None if depth == WHOLE else depth, _EPOCH + timedelta(microseconds=moment)
    return LedgerEntry(key, entry_depth, text, attempts, seconds, finished_at, stored.tokens, service, via)


def _row(entry: LedgerEntry) -> dict[str, Any]:
    depth = entry.depth or WHOLE
    base = (
        entry.key,
        int(depth.results),
        None if depth.distance is None else float(depth.distance),
        int(entry.attempts),
        float(entry.seconds),
        entry.finished_at.astimezone(UTC),
        entry.answer.encode("utf-8", "surrogatepass"),
    )
    further = _further_of(entry)
    return {**dict(zip(_BASE, base, strict=True)), **further, "check": _check(base, base[-2].isoformat(), further)}


def _further_of(entry: LedgerEntry) -> dict[str, Any]:
    """The values of the columns that format 2 adds, sorted, without nulls."""
    further: dict[str, Any] = {}
    if entry.tokens != Tokens():
        tokens = (entry.tokens.input, entry.tokens.cached, entry.tokens.output)
        further.update(zip(_TOKENS, map(int, tokens), strict=True))
    further |= {name: value for name, value in (("service", entry.service), ("via", entry.via)) if value}
    return dict(sorted(further.items()))


def _base(rows: pa.Table, moments: pa.ChunkedArray) -> Iterator[tuple[Any, ...]]:
    return zip(*((moments if name == "finished_at" else rows.column(name)).to_pylist() for name in _BASE), strict=True)


def _format_moments(moments: pa.ChunkedArray) -> list[str]:
    """Moments as `datetime.isoformat` writes them in UTC: without a fraction if it is 0.

    >>> _format_moments(pa.chunked_array([[0, 1]]))
    ['1970-01-01T00:00:00+00:00', '1970-01-01T00:00:00.000001+00:00']
    """
    texts = np.datetime_as_string(moments.to_numpy().astype("M8[us]")).tolist()
    return [f"{text.removesuffix('.000000')}+00:00" for text in texts]


def _further(rows: pa.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    """The values of the other columns, without nulls."""
    if not names:
        return [{}] * rows.num_rows
    columns = [rows.column(name).to_pylist() for name in names]
    return [
        {name: value for name, value in zip(names, values, strict=True) if value is not None}
        for values in zip(*columns, strict=True)
    ]


def _stored_row(base: tuple[Any, ...], shown: str, further: dict[str, Any], check: int) -> StoredRow | None:
    try:
        return StoredRow(base, further) if check == _check(base, shown, further) else None
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _check(base: tuple[Any, ...], shown: str, further: dict[str, Any]) -> int:
    """A hash of all values, without nulls of columns beyond format 1."""
    further_text = f"{list(further.items())!r} " if further else ""
    digest = blake2b(f"{base[:-2]!r} {shown} {further_text}".encode("utf-8", "surrogatepass"), digest_size=8)
    digest.update(base[-1])
    return int.from_bytes(digest.digest(), "big")
