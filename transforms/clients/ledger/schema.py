"""The columns of a part, by format, and the metadata that describe them.

Format 1 is that of the first release. Format 2 adds columns that may be null. Whatever the format, a part is read by
column name: the columns of format 1 are always present, others are read where the part has them, and an unknown column
is kept when parts are merged and otherwise ignored.

A part names the columns that `check`, the hash of each row, covers beside those of format 1; a value that is null
counts as absent. So one part may hold rows of several formats, a later format's hash can cover columns that are unknown
here, and a column that another program has added is ignored. The first release treats a part with more columns as
another program's: it neither reads nor removes the part, and pays for those answers again.
"""

from dataclasses import dataclass

import pyarrow as pa

FORMAT = 2
FIRST = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("results", pa.int64(), nullable=False),  # with no distance: 0 where the answer is whole
        pa.field("distance", pa.float64()),
        pa.field("attempts", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("finished_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("answer", pa.binary(), nullable=False),  # a JSON text may hold half a surrogate pair, a string not
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
        pa.field("via", pa.string()),  # the transport of the call; null for a request of its own
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
        """The number of the format; 1 where the part does not state it."""
        number = self._metadata().get(_VERSION, b"1")
        return int(number) if number.isdigit() else 1

    @property
    def checked(self) -> list[str]:
        """The columns beside those of format 1 that each row's hash covers, sorted."""
        names = self._metadata().get(_CHECKED, b"").decode("utf-8", "replace").split()
        return sorted(set(names) & set(self.schema.names) - set(FIRST.names))

    @property
    def read(self) -> list[str]:
        """The columns of an entry, its hash included."""
        return [*FIRST.names, *self.checked]

    def is_ours(self) -> bool:
        known = [*FIRST, *(ADDED.field(name) for name in self.checked if name in ADDED.names)]
        return all(field.name in self.schema.names and self.schema.field(field.name).equals(field) for field in known)

    def joined(self, other: "PartLayout") -> "PartLayout | None":
        """The columns and the metadata of both; None where they contradict each other.

        Columns may be of different types, hashes may cover a column only in one of them, and metadata that are not the
        ledger's own may disagree.
        """
        ours, theirs = self._metadata(), other._metadata()
        own = {_VERSION: str(max(self.version, other.version)).encode()}
        own[_CHECKED] = " ".join(sorted({*self.checked, *other.checked})).encode()
        shared = set(self.schema.names) & set(other.schema.names)
        if any((name in self.checked) != (name in other.checked) for name in shared - set(FIRST.names)):
            return None
        if any(ours[name] != theirs[name] for name in set(ours) & set(theirs) - set(own)):
            return None
        fields = {field.name: field for field in (*other.schema, *self.schema)}
        if any(other.schema.field(name).type != fields[name].type for name in shared):
            return None
        names = dict.fromkeys([*self.schema.names, *other.schema.names])
        fields_joined = [fields[name] if name in FIRST.names else fields[name].with_nullable(True) for name in names]
        return PartLayout(pa.schema(fields_joined, {**ours, **theirs, **own}))

    def fitted(self, rows: pa.Table) -> pa.Table:
        """Rows of a layout that was `joined` to this one, with all columns of this one."""
        columns = [
            rows.column(field.name) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
            for field in self.schema
        ]
        return pa.table(columns, schema=self.schema)

    def _metadata(self) -> dict[bytes, bytes]:
        return dict(self.schema.metadata or {})


WRITTEN = PartLayout(SCHEMA)
"""The layout of parts written by this version."""
