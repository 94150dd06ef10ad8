"""Merges parts of a ledger, so that it has few files no matter how many runs use it.

The merged part is written before its sources are deleted: readers may see an answer twice, but never miss it, and a
killed process leaves both. Two processes may merge the same parts at once: a part is deleted only if its content is in
a part that stays, and a process whose sources have disappeared meanwhile (merged or cleared) deletes its own part
again. Parts that cannot be read, or that contradict the others in a column or in their metadata, are left alone.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa

from rankbeam.transforms.clients.ledger import store
from rankbeam.transforms.clients.ledger.leases.lease import Holder, Lease
from rankbeam.transforms.clients.ledger.leases.places import lease_place
from rankbeam.transforms.clients.ledger.parts import Encoder, PartError, PartReader
from rankbeam.transforms.clients.ledger.rows import WRITTEN, PartLayout
from rankbeam.transforms.clients.storage import whole_files
from rankbeam.transforms.clients.storage.whole_files import StoredFile
from rankbeam.transforms.records.errors import InputError

TIERS = (1 << 20, 8 << 20)
"""Sizes below which the number of parts is kept small; parts larger than the last size are left alone."""
MANY = 32
_PART_BYTES = 2 * TIERS[-1]  # approximate size of a merged part, and of a merge in memory
_LEFT_BEHIND_S = 86_400.0

Merge = Generator[None, None, StoredFile | None]
"""A merge that proceeds step by step, and returns the new part; None if there is none."""


@dataclass(frozen=True)
class CompactionResult:
    """The effect of compacting."""

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


def compact(folder: str) -> CompactionResult:
    before = store.parts_in(folder)
    with _alone(folder) as is_alone:
        small = [part for part in before if part.bytes < TIERS[-1]] if is_alone else []
        while len(chosen := fitting_parts(small)) > 1:
            small = small[len(chosen) :]
            run_to_end(merge(folder, chosen))
        store.delete_left_behind(folder, _LEFT_BEHIND_S)
    after = store.parts_in(folder)
    return CompactionResult(
        len(before), len(after), sum(part.bytes for part in before), sum(part.bytes for part in after)
    )


def tidy(folder: str) -> None:
    """Merge small parts of any run if a ledger has many; after an error, a later run merges them."""
    with suppress(InputError):
        if not due(store.parts_in(folder)):
            return
        with _alone(folder) as is_alone:
            if is_alone and (chosen := due(store.parts_in(folder))):
                run_to_end(merge(folder, chosen))
            store.delete_left_behind(folder, _LEFT_BEHIND_S)


def run_to_end(steps: Iterable[None]) -> None:
    for _ in steps:
        pass


def due(parts: Sequence[StoredFile]) -> list[StoredFile]:
    """The parts to merge: those of a tier with many parts; empty if no tier has many."""
    for tier in TIERS:
        below = [part for part in parts if part.bytes < tier]
        if len(below) >= MANY:
            return fitting_parts(below)
    return []


def fitting_parts(chosen: Sequence[StoredFile]) -> list[StoredFile]:
    """The first parts, as many as fit into one part of bounded size."""
    taken, size = [], 0
    for part in chosen:
        size += part.bytes
        if size > _PART_BYTES:
            break
        taken.append(part)
    return taken


def merge(folder: str, chosen: Sequence[StoredFile]) -> Merge:
    """Merge several parts into one; a step reads a row group or deletes a file."""
    layout, joined = _mergeable_parts(chosen)
    encoder = None
    while encoder is None and len(joined) > 1:
        encoder = yield from _encode_parts(layout, joined)
    if encoder is None:
        return None
    merged = store.put(folder, encoder.finish())
    yield
    if {part.path for part in joined} <= {part.path for part in store.parts_in(folder)}:
        for part in joined:
            whole_files.delete(part.path)
        return merged
    whole_files.delete(merged.path)
    return None


def _encode_parts(layout: PartLayout, joined: list[StoredFile]) -> Generator[None, None, Encoder | None]:
    """Encode the rows of parts, a row group at a time; None if a part cannot be read, which is then removed."""
    encoder, seen = Encoder(layout), set[int]()  # with 2**20 rows, two share a hash with a probability of 2**-25
    for part in joined:
        try:
            with PartReader(part.path) as reader:
                for group in range(reader.groups):
                    encoder.add(_only_once(reader.rows(group), seen))
                    yield
        except PartError:
            joined.remove(part)
            return None
    return encoder


def _mergeable_parts(chosen: Sequence[StoredFile]) -> tuple[PartLayout, list[StoredFile]]:
    """The largest group of parts that can be merged, with all their columns and metadata."""
    groups: list[tuple[PartLayout, list[StoredFile]]] = [(WRITTEN, [])]
    for part in chosen:
        with suppress(PartError), PartReader(part.path) as reader:
            for number, (layout, joined) in enumerate(groups):
                if union := layout.joined(reader.layout):
                    groups[number] = union, [*joined, part]
                    break
            else:
                groups.append((reader.layout, [part]))
    return max(groups, key=lambda group: len(group[1]))


def _only_once(rows: pa.Table, seen: set[int]) -> pa.Table:
    """Leave out repeated rows, which an earlier merge left when it was killed between two steps."""
    names = list(map(hash, zip(rows.column("key").to_pylist(), rows.column("check").to_pylist(), strict=True)))
    new = [name not in seen for name in names]
    seen.update(names)
    return rows if all(new) else rows.filter(pa.array(new))


@contextmanager
def _alone(folder: str) -> Iterator[bool]:
    """Yield whether no other process is compacting the ledger: two at once are safe, but repeat the work."""
    lease = Lease(lease_place(folder), "compaction", Holder.here("", ""))
    is_alone = lease.claim() is None
    try:
        yield is_alone
    finally:
        lease.release()
