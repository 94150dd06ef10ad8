"""Looks up answers for a stream of calls: the small columns of all parts are read once, into an index."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow.compute as pc

from rankbeam.transforms.clients.ledger import journal, store
from rankbeam.transforms.clients.ledger.index import COLUMNS, ROW, Index, IndexPlace, Rows, index_rows, join_rows
from rankbeam.transforms.clients.ledger.parts import PartError, PartReader, PartVanished, encode_entries
from rankbeam.transforms.clients.ledger.rows import (
    IMPOSSIBLE,
    WHOLE,
    LedgerEntry,
    StoredRow,
    are_possible,
    covers,
    table_of,
)
from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.kernels.arrays import IntArray
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.steps import SearchDepth
from rankbeam.transforms.records.errors import InputError, pluralize

_THREADS = 8
_ROUNDS = 20


class Lookup:
    """Finds the answers to any number of earlier calls, in any order, for any number of threads.

    Only `refresh` lists the folder; it reads the new parts and, the first time, the journals of killed processes.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._damage: dict[str, str] = {}
        self._unusable: set[IndexPlace] = set()
        self.index = Index([], np.empty(0, ROW))  # of the parts known so far
        self._refreshing = threading.Lock()
        self._adopts = True
        self.lost = 0

    def refresh(self) -> None:
        """Add new parts to the index, and drop deleted ones."""
        with self._refreshing:
            self._refresh()
            if self._adopts:
                self._adopts = False
                with suppress(InputError, OSError):  # this process cannot write the ledger, but the next one may
                    self._adopt()

    def _refresh(self) -> None:
        for _ in range(_ROUNDS):  # again if a merge has moved rows to a part that was not listed
            if self._is_refreshed():
                return

    def _adopt(self) -> None:
        """Write the answers that killed processes left in journals to a part, and count the calls in flight."""
        with journal.left_in(self._folder) as (entries, self.lost):
            checks = table_of(entries).column("check").to_numpy()
            is_known = np.isin(checks, self.index.checks)  # in a part, but the journal was not deleted
            new = [entry for entry, known in zip(entries, is_known, strict=True) if not known]
            if new:
                store.put(self._folder, encode_entries(new))
        if new:
            self._refresh()

    def place(self, key: str, depth: SearchDepth | None) -> IndexPlace | None:
        """The position of the newest answer whose depth covers the requested one; None if there is none."""
        return next((place for place in self.index.places(key, depth) if place not in self._unusable), None)

    def read(self, depths: Mapping[str, SearchDepth | None]) -> Iterator[LedgerEntry]:
        """The answers to some calls, in the order of the files, without missing and unreadable ones."""
        remaining = dict(depths)
        for _ in range(_ROUNDS):  # again if a merge moved an answer, or a damaged one has an older copy
            places = {place: key for key, depth in remaining.items() if (place := self.place(key, depth)) is not None}
            is_settled = True
            for place, entry in self._entries(sorted(places)):
                if entry is not None and _answers(entry, places[place], remaining[places[place]]):
                    del remaining[entry.key]
                    yield entry
                else:
                    self._unusable.add(place)
                    is_settled = False
            if is_settled:
                return
            self.refresh()

    def read_at(self, index: Index, numbers: IntArray) -> Iterator[tuple[slice, Sequence[StoredRow | None]]]:
        """The stored answers with these numbers, which are in the order of the files."""
        for path, groups in groupby(index.groups(numbers), key=itemgetter(0)):
            try:
                reader = PartReader(path)
            except PartError:
                yield from ((positions, [None] * len(rows)) for _, _, positions, rows in groups)
                continue
            with reader:
                yield from ((positions, _stored_rows(reader, group, rows)) for _, group, positions, rows in groups)

    def warnings(self) -> list[str]:
        """Warnings about the parts that were read so far, and about calls that killed processes had in flight."""
        warnings = []
        if self.lost:
            lost = f"{pluralize(self.lost, 'call')} in flight when a run was killed may have been charged, and are made"
            warnings.append(f"{lost} again if they are needed")
        if damaged := sorted(self._damage.copy().items()):
            (path, reason), *others = damaged
            more = f" (and {len(others):,} more)" if others else ""
            paid = "answers of earlier calls cannot be read, and are paid for again if they are needed"
            warnings.append(f"{path}{more}: {paid}: {reason}; `rankbeam ledger {self._folder}` names all damaged files")
        return warnings

    def _is_refreshed(self) -> bool:
        """Read new parts; returns whether every listed part still existed."""
        folders = (self._folder, *store.also_read(self._folder))
        listed = [part.path for folder in folders for part in store.parts_in(folder)]
        known = set(self.index.paths)
        new = [path for path in listed if path not in known]
        with ThreadPoolExecutor(_THREADS) as threads:  # on an object store, reading is mostly waiting
            rows = dict(zip(new, threads.map(self._rows_of, new), strict=True))
        read = {path: part_rows for path, part_rows in rows.items() if part_rows is not None}
        present = [path for path in listed if path in known or path in read]
        if read or len(present) < len(known):
            self.index = self.index.changed(present, read)
            spill.release_unused_memory()  # from the previous index, and from the reading threads
        return len(read) == len(new)

    def _rows_of(self, path: str) -> Rows | None:
        """The index of a part; empty if it cannot be read, None if it was deleted."""
        try:
            return join_rows(self._rows_of_groups(path))
        except PartVanished:
            return None

    def _rows_of_groups(self, path: str) -> Iterator[Rows]:
        with self._note_damage(path), PartReader(path) as reader:
            for group in range(reader.groups):
                with self._note_damage(path):  # other row groups may be good
                    columns = reader.rows(group, COLUMNS)
                    possible = are_possible(columns)
                    if not pc.all(possible).as_py():
                        self._note(path, IMPOSSIBLE)
                    yield index_rows(columns, possible, group)

    def _entries(self, places: Iterable[IndexPlace]) -> Iterator[tuple[IndexPlace, LedgerEntry | None]]:
        """The entries at sorted positions; None for a damaged or deleted one."""
        for path, part_places in grouped((place.path, place) for place in places).items():
            try:
                with PartReader(path) as reader:
                    for group, group_places in grouped((place.group, place) for place in part_places).items():
                        yield from zip(group_places, self._group_entries(reader, group, group_places), strict=True)
            except PartError as error:
                if not isinstance(error, PartVanished):
                    self._note(path, error)
                yield from ((place, None) for place in part_places)

    def _group_entries(self, reader: PartReader, group: int, places: list[IndexPlace]) -> list[LedgerEntry | None]:
        entries: list[LedgerEntry | None] = [None] * len(places)
        with self._note_damage(reader.path):  # other row groups may be good
            entries = reader.entries(group, [place.row for place in places])
            if not all(entries):
                self._note(reader.path, IMPOSSIBLE)
        return entries

    @contextmanager
    def _note_damage(self, path: str) -> Iterator[None]:
        """Note a part's damage and go on after the block; a part that has vanished is not damaged."""
        try:
            yield
        except PartVanished:
            raise
        except PartError as error:
            self._note(path, error)

    def _note(self, path: str, problem: object) -> None:
        self._damage.setdefault(path, str(problem))


def adopt_journals(folder: str) -> int:
    """Write the answers that killed processes left in journals to a part; returns the number of calls in flight."""
    lookup = Lookup(folder)
    if store.journals_in(folder):
        lookup.refresh()
    return lookup.lost


def _answers(entry: LedgerEntry, key: str, depth: SearchDepth | None) -> bool:
    """Return whether an entry answers the call; the row's small columns, which say so, may be damaged, too."""
    stored = entry.depth or WHOLE
    return entry.key == key and covers(stored.results, stored.distance, depth)


def _stored_rows(reader: PartReader, group: int, rows: list[int]) -> Sequence[StoredRow | None]:
    """Some stored rows of a row group; None for each if they cannot be read."""
    try:
        return reader.stored(group, rows)
    except PartError:
        return [None] * len(rows)
