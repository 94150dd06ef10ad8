"""The positions of requested answers in a ledger: the small columns of all parts, of which only hits are kept."""

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.ledger import store
from rankbeam.transforms.clients.ledger.parts import PartError, PartReader, Vanished
from rankbeam.transforms.clients.ledger.rows import IMPOSSIBLE, WHOLE, Entry, are_possible
from rankbeam.transforms.records.calls.reach import Reach

Hits = npt.NDArray[Any]
"""A row for each hit: the place of its key among the requested ones, and its position in the ledger."""

_HIT = np.dtype(
    [
        ("place", np.int64),
        ("moment", np.int64),
        ("check", np.uint64),
        ("part", np.int64),
        ("group", np.int64),
        ("row", np.int64),
    ]
)
_COLUMNS = ["key", "results", "distance", "finished_at", "check"]
_THREADS = 8


class Index:
    """The parts of a ledger, and which of them are unusable.

    Args:
        folder: the folder of the ledger.
        known: paths of parts to skip.

    Attributes:
        listed: paths of all parts listed so far.
        damage: for each part that cannot be read, wholly or in places, the first reason.
    """

    def __init__(self, folder: str, known: Collection[str] = ()) -> None:
        self._folder, self._known = folder, frozenset(known)
        self.listed: set[str] = set()
        self.damage: dict[str, str] = {}
        self._paths: list[str] = []
        self._damaged: set[str] = set()
        self._unusable: set[tuple[str, int, int]] = set()
        self._settled = True

    def is_settled(self) -> bool:
        """Whether all hits could be read since `hits` was called; if not, calling it again may find other copies."""
        return self._settled

    def hits(self, wanted: Mapping[str, Reach | None]) -> Hits:
        """The newest row for each wanted key whose reach covers the wanted one, in the order of files.

        Raises:
            InputError: the folder cannot be looked up.
        """
        self._settled = True
        if not wanted:
            return np.empty(0, _HIT)
        sought = _Wanted.of(wanted)
        listed = [part.path for part in store.parts_in(self._folder)]
        self.listed.update(listed)
        self._paths = [path for path in listed if path not in self._damaged and path not in self._known]
        with ThreadPoolExecutor(_THREADS) as threads:  # on an object store, reading is mostly waiting
            found = list(threads.map(lambda number: self._of_part(number, sought), range(len(self._paths))))
        return _in_files(_newest(np.concatenate([np.empty(0, _HIT), *found])))

    def read(self, hits: Hits, wanted: Mapping[str, Reach | None]) -> Iterator[Entry]:
        """The entries of hits, a row group at a time, without those that are damaged or deleted."""
        for of_part in _split(hits, "part"):
            path = self._paths[of_part["part"][0]]
            try:
                with PartReader(path) as reader:
                    for of_group in _split(of_part, "group"):
                        yield from self._of_group(reader, of_group, wanted)
            except Vanished:
                self._settled = False
            except PartError as error:
                self._leave_out(path, error)
                self._settled = False

    def _of_part(self, number: int, sought: "_Wanted") -> Hits:
        path = self._paths[number]
        found: list[Hits] = []
        try:
            with PartReader(path) as reader:
                for group in range(reader.groups):
                    found += self._in_group(reader, number, group, sought)
        except Vanished:
            self._settled = False
        except PartError as error:
            self._leave_out(path, error)
        hits = np.concatenate([np.empty(0, _HIT), *found])
        bad = {(group, row) for bad_path, group, row in self._unusable if bad_path == path}
        return hits[[(group, row) not in bad for group, row in hits[["group", "row"]].tolist()]] if bad else hits

    def _in_group(self, reader: PartReader, number: int, group: int, sought: "_Wanted") -> Iterator[Hits]:
        try:
            rows = reader.rows(group, _COLUMNS)
        except Vanished:
            raise
        except PartError as error:  # other row groups may be good
            self._note(reader.path, error)
            return
        possible = are_possible(rows)
        if not pc.all(possible).as_py():
            self._note(reader.path, IMPOSSIBLE)
        yield sought.hits(rows, possible, number, group)

    def _of_group(self, reader: PartReader, hits: Hits, wanted: Mapping[str, Reach | None]) -> Iterator[Entry]:
        group, rows = int(hits["group"][0]), hits["row"].tolist()
        entries: list[Entry | None] = [None] * len(rows)
        try:
            entries = reader.entries(group, rows)
        except Vanished:
            raise
        except PartError as error:  # other row groups may be good
            self._note(reader.path, error)
        for row, entry in zip(rows, entries, strict=True):
            if entry is not None and _answers(entry, wanted):
                yield entry
            else:
                self._note(reader.path, IMPOSSIBLE)
                self._unusable.add((reader.path, group, row))
                self._settled = False

    def _leave_out(self, path: str, error: PartError) -> None:
        self._damaged.add(path)
        self._note(path, error)

    def _note(self, path: str, problem: object) -> None:
        self.damage.setdefault(path, str(problem))


@dataclass(frozen=True)
class _Wanted:
    """The requested reaches, as columns."""

    places: dict[str, int]
    whole: npt.NDArray[np.bool_]
    results: npt.NDArray[np.int64]
    bounded: npt.NDArray[np.bool_]
    distance: npt.NDArray[np.float64]

    @staticmethod
    def of(wanted: Mapping[str, Reach | None]) -> "_Wanted":
        reaches = [reach or WHOLE for reach in wanted.values()]
        return _Wanted(
            {key: place for place, key in enumerate(wanted)},
            np.array([reach is None for reach in wanted.values()], np.bool_),
            np.array([reach.results for reach in reaches], np.int64),
            np.array([reach.distance is not None for reach in reaches], np.bool_),
            np.array([reach.distance or 0.0 for reach in reaches], np.float64),
        )

    def hits(self, rows: pa.Table, possible: pa.ChunkedArray, part: int, group: int) -> Hits:
        """The rows of a row group that answer a call, by the rule of `_covers`."""
        places = np.array([self.places.get(key, -1) for key in rows.column("key").to_pylist()], np.int64)
        here = np.flatnonzero((places >= 0) & possible.to_numpy())
        places = places[here]
        rows = rows.take(pa.array(here))
        results, distance = rows.column("results").to_numpy(), rows.column("distance")
        bounded = distance.is_valid().to_numpy()
        near = self.bounded[places] & (self.distance[places] <= pc.fill_null(distance, 0.0).to_numpy())
        covers = (results >= self.results[places]) & (~bounded | near)
        whole = (results == WHOLE.results) & ~bounded
        hits = np.empty(len(here), _HIT)
        hits["place"], hits["part"], hits["group"], hits["row"] = places, part, group, here
        hits["moment"] = pc.cast(rows.column("finished_at"), pa.int64()).to_numpy()
        hits["check"] = rows.column("check").to_numpy()
        fitting: Hits = hits[np.where(self.whole[places], whole, covers)]
        return fitting


def _answers(entry: Entry, wanted: Mapping[str, Reach | None]) -> bool:
    """Whether an entry agrees with its row's small columns, which may be damaged as well."""
    return entry.key in wanted and _covers(entry.reach, wanted[entry.key])


def _covers(held: Reach | None, wanted: Reach | None) -> bool:
    """Whether a stored answer answers a call: whole for whole, and a ranking for one of an equal or shorter reach."""
    return held is None if wanted is None else (held or WHOLE).covers(wanted)


def _newest(hits: Hits) -> Hits:
    """One hit for each place: the newest, with ties broken the same way wherever merges have moved the copies."""
    keys = ("row", "group", "part", "check", "moment", "place")
    hits = hits[np.lexsort([hits[key] for key in keys])]
    return hits[np.append(np.diff(hits["place"]) != 0, True)] if len(hits) else hits


def _in_files(hits: Hits) -> Hits:
    ordered: Hits = hits[np.lexsort([hits[key] for key in ("row", "group", "part")])]
    return ordered


def _split(hits: Hits, column: str) -> Iterator[Hits]:
    """Runs of equal values."""
    return iter(np.split(hits, np.flatnonzero(np.diff(hits[column])) + 1) if len(hits) else [])
