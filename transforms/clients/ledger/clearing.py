"""Clears a ledger, wholly or of old answers."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.ledger import store, uses
from rankbeam.transforms.clients.ledger.lookup import adopt_journals
from rankbeam.transforms.clients.ledger.parts import Encoder, ForeignPart, PartError, PartReader, Vanished
from rankbeam.transforms.clients.ledger.store import StoredFile


@dataclass(frozen=True)
class Cleared:
    """The amounts that were removed."""

    files: int
    answers: int
    bytes: int  # bytes by which the parts shrank


def clear(folder: str, older_than: timedelta | None = None) -> Cleared:
    """Remove the content of a ledger. Files that are not the ledger's stay."""
    adopt_journals(folder)
    limit = None if older_than is None else datetime.now(UTC) - older_than
    cleared = [_cleared(folder, part, limit) for part in store.parts_in(folder)]
    _clear_uses(folder, limit)
    files, answers, count = (sum(amounts) for amounts in zip((0, 0, 0), *cleared, strict=True))
    return Cleared(files, answers, count)


def _cleared(folder: str, part: StoredFile, limit: datetime | None) -> tuple[int, int, int]:
    """Files, answers and bytes."""
    keep, answers, any_left = Encoder(), 0, False
    try:
        with PartReader(part.path) as reader:
            keep = Encoder(reader.layout)
            for group in range(reader.groups):
                rows = reader.rows(group)
                new = _newer(rows, limit)
                keep.add(new)
                answers += rows.num_rows - new.num_rows
                any_left = any_left or new.num_rows > 0
    except (Vanished, ForeignPart):
        return 0, 0, 0
    except PartError:
        if limit is not None:
            return 0, 0, 0
    if not any_left:
        return (1, answers, part.bytes) if (limit is None or answers) and store.delete(part.path) else (0, 0, 0)
    if not answers:
        return 0, 0, 0
    smaller = store.put(folder, keep.finish())
    if store.delete(part.path):
        return 1, answers, part.bytes - smaller.bytes
    store.delete(smaller.path)  # merged meanwhile, with the rows to remove
    return 0, 0, 0


def _newer(rows: pa.Table, limit: datetime | None) -> pa.Table:
    """The rows that stay. A row with an impossible time stays too, as its age is unknown."""
    if limit is None:
        return rows.slice(0, 0)
    return rows.filter(pc.fill_null(pc.greater_equal(rows.column("finished_at"), limit), True))


def _clear_uses(folder: str, limit: datetime | None) -> None:
    for stored in store.uses_in(folder):
        use = None if limit is None else uses.read(stored)
        if limit is None or (use is not None and use.at < limit):
            store.delete(stored.path)
    for stored in (
        [*store.unfinished_in(folder), *store.tried_in(folder), *store.logs_in(folder)] if limit is None else []
    ):
        store.delete(stored.path)
