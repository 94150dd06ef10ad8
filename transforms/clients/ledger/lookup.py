"""Looks up answers for a stream of calls: the small columns of all parts are read once and kept as a sorted index."""

import functools
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.ledger import store
from rankbeam.transforms.clients.ledger.parts import PartError, PartReader, Vanished
from rankbeam.transforms.clients.ledger.rows import IMPOSSIBLE, WHOLE, Entry, are_possible
from rankbeam.transforms.records.calls.reach import Reach

Rows = npt.NDArray[Any]

_ROW = np.dtype(
    [
        ("hash", np.int64),
        ("moment", np.int64),
        ("check", np.uint64),
        ("results", np.int64),
        ("distance", np.float64),
        ("part", np.int32),
        ("group", np.int32),
        ("row", np.int32),
    ]
)
_COLUMNS = ["key", "results", "distance", "finished_at", "check"]
_THREADS = 8
_ROUNDS = 20


class Place(NamedTuple):
    """The position of an answer: the path of its part, a row group, and a row of the group."""

    path: str
    group: int
    row: int


class Lookup:
    """Finds the answers of any number of earlier calls, in any order.

    An entry of the ledger takes 52 bytes here. Only `refresh` lists the folder; it reads the new parts.

    Args:
        folder: of the ledger.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._damage: dict[str, str] = {}
        self._unusable: set[Place] = set()
        self._index = _Index([], np.empty(0, _ROW))

    def refresh(self) -> None:
        """Read the index of the parts that were added, and drop that of deleted parts.

        Raises:
            InputError: the folder cannot be listed.
        """
        for _ in range(_ROUNDS):  # again when a merge has moved the rows of a part to one that was not listed
            if self._is_refreshed():
                return

    def place(self, key: str, reach: Reach | None) -> Place | None:
        """The position of the newest answer whose reach covers the requested one; None where there is none.

        Args:
            key: the key of the call.
            reach: how far into a ranking the answer has to go; None for an answer that is whole.
        """
        return next((place for place in self._index.places(key, reach) if place not in self._unusable), None)

    def read(self, wanted: Mapping[str, Reach | None]) -> Iterator[Entry]:
        """The answers to some calls, in the order of files; none for those absent or unreadable.

        Raises:
            InputError: the folder cannot be listed.
        """
        left = dict(wanted)
        for _ in range(_ROUNDS):  # again when a merge moves an answer, or a damaged one has an older copy
            places = {place: key for key, reach in left.items() if (place := self.place(key, reach)) is not None}
            is_settled = True
            for place, entry in self._entries(sorted(places)):
                if entry is not None and _answers(entry, places[place], left[places[place]]):
                    del left[entry.key]
                    yield entry
                else:
                    self._unusable.add(place)
                    is_settled = False
            if is_settled:
                return
            self.refresh()

    def warnings(self) -> list[str]:
        """Warnings about the parts that were read so far."""
        if not self._damage:
            return []
        (path, reason), *others = sorted(self._damage.items())
        more = f" (and {len(others):,} more)" if others else ""
        paid = "answers of earlier calls cannot be read, and are paid for again where they are needed"
        return [f"{path}{more}: {paid}: {reason}; `rankbeam ledger {self._folder}` names all damaged files"]

    def _is_refreshed(self) -> bool:
        """Read what was added; returns whether every listed part was still there."""
        listed = [part.path for part in store.parts_in(self._folder)]
        known = set(self._index.paths)
        new = [path for path in listed if path not in known]
        with ThreadPoolExecutor(_THREADS) as threads:  # on an object store, reading is mostly waiting
            rows = dict(zip(new, threads.map(self._rows_of, new), strict=True))
        read = {path: here for path, here in rows.items() if here is not None}
        there = [path for path in listed if path in known or path in read]
        if read or len(there) < len(known):
            self._index = self._index.changed(there, read)
        return len(read) == len(new)

    def _rows_of(self, path: str) -> Rows | None:
        """The index of a part; empty where it cannot be read, None where it was deleted."""
        groups = [np.empty(0, _ROW)]
        try:
            with PartReader(path) as reader:
                for group in range(reader.groups):
                    groups += self._rows_of_group(reader, group)
        except Vanished:
            return None
        except PartError as error:
            self._note(path, error)
        return np.concatenate(groups)

    def _rows_of_group(self, reader: PartReader, group: int) -> Iterator[Rows]:
        try:
            columns = reader.rows(group, _COLUMNS)
        except Vanished:
            raise
        except PartError as error:  # other row groups may be good
            self._note(reader.path, error)
            return
        possible = are_possible(columns)
        if not pc.all(possible).as_py():
            self._note(reader.path, IMPOSSIBLE)
        yield _indexed(columns, possible, group)

    def _entries(self, places: Iterable[Place]) -> Iterator[tuple[Place, Entry | None]]:
        """The entries at sorted places; None for one that is damaged or deleted."""
        of_parts: dict[str, dict[int, list[Place]]] = {}
        for place in places:
            of_parts.setdefault(place.path, {}).setdefault(place.group, []).append(place)
        for path, groups in of_parts.items():
            try:
                with PartReader(path) as reader:
                    for group, here in groups.items():
                        yield from zip(here, self._of_group(reader, group, here), strict=True)
            except PartError as error:
                if not isinstance(error, Vanished):
                    self._note(path, error)
                yield from ((place, None) for here in groups.values() for place in here)

    def _of_group(self, reader: PartReader, group: int, places: list[Place]) -> list[Entry | None]:
        try:
            entries = reader.entries(group, [place.row for place in places])
        except Vanished:
            raise
        except PartError as error:  # other row groups may be good
            self._note(reader.path, error)
            return [None] * len(places)
        if not all(entries):
            self._note(reader.path, IMPOSSIBLE)
        return entries

    def _note(self, path: str, problem: object) -> None:
        self._damage.setdefault(path, str(problem))


class _Index:
    """The rows of all parts, sorted by the hash of their key, and for one key the newest first.

    Args:
        paths: of the parts.
        rows: of all parts, each with the position of its part.
    """

    def __init__(self, paths: Sequence[str], rows: Rows) -> None:
        self.paths = list(paths)
        order = _order(rows)
        # Single values of an array are read several times as fast as those of NumPy's.
        self._columns = {name: array(_ROW[name].char, rows[name][order].tobytes()) for name in _ROW.names or ()}
        self._hashes, self._results, self._distances = (self._columns[name] for name in ("hash", "results", "distance"))
        self._places = tuple(self._columns[name] for name in ("part", "group", "row"))

    def changed(self, paths: Sequence[str], new: Mapping[str, Rows]) -> "_Index":
        """The index of other parts: of those here that stay, and of new ones."""
        numbers = {path: number for number, path in enumerate(paths)}
        parts = np.array([numbers.get(path, -1) for path in self.paths], np.int32)
        parts = parts[np.frombuffer(self._columns["part"], np.int32)]
        stays = parts >= 0
        rows = np.empty(np.count_nonzero(stays) + sum(map(len, new.values())), _ROW)
        at = np.count_nonzero(stays)
        for name, column in self._columns.items():
            rows[name][:at] = np.frombuffer(column, _ROW[name])[stays]
        rows["part"][:at] = parts[stays]
        for path, added in new.items():
            added["part"] = numbers[path]
            rows[at : at + len(added)] = added
            at += len(added)
        return _Index(paths, rows)

    def places(self, key: str, reach: Reach | None) -> Iterator[Place]:
        """The positions of answers to a call, the newest first. Entries distinguish keys with equal hashes."""
        wanted, hashes = hash(key), self._hashes
        at = bisect_left(hashes, wanted)
        while at < len(hashes) and hashes[at] == wanted:
            if _covers(self._results[at], self._distances[at], reach):
                part, group, row = (column[at] for column in self._places)
                yield Place(self.paths[part], group, row)
            at += 1


def _order(rows: Rows) -> npt.NDArray[np.int64]:
    """The order of rows by hash, and of the few that share one by time, with ties broken as merges leave them."""
    order = np.argsort(rows["hash"], kind="stable")
    hashes = rows["hash"][order]
    is_as_before = np.append(False, hashes[1:] == hashes[:-1])
    shared = np.flatnonzero(is_as_before | np.append(is_as_before[1:], False))
    some = rows[order[shared]]
    keys = [some["row"], some["group"], some["part"], some["check"], -some["moment"], some["hash"]]
    order[shared] = order[shared][np.lexsort(keys)]
    return order


def _indexed(columns: pa.Table, possible: pa.ChunkedArray, group: int) -> Rows:
    here = np.flatnonzero(possible.to_numpy())
    columns = columns.take(pa.array(here))
    rows = np.zeros(len(here), _ROW)
    rows["hash"] = [hash(key) for key in columns.column("key").to_pylist()]
    rows["moment"] = pc.cast(columns.column("finished_at"), pa.int64()).to_numpy()
    rows["check"] = columns.column("check").to_numpy()
    rows["results"] = columns.column("results").to_numpy()
    rows["distance"] = pc.fill_null(columns.column("distance"), np.nan).to_numpy()
    rows["group"], rows["row"] = group, here
    return rows


def _covers(results: int, distance: float, wanted: Reach | None) -> bool:
    held = _reach(results, None if distance != distance else distance)
    return held == WHOLE if wanted is None else held.covers(wanted)


@functools.lru_cache(maxsize=64)
def _reach(results: int, distance: float | None) -> Reach:
    return Reach(results, distance)


def _answers(entry: Entry, key: str, wanted: Reach | None) -> bool:
    """Whether an entry agrees with its row's small columns, which may be damaged as well."""
    held = entry.reach or WHOLE
    return entry.key == key and _covers(held.results, float("nan") if held.distance is None else held.distance, wanted)
