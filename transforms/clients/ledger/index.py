"""The index of a ledger's parts: the small columns of all answers, sorted by the hash of their key."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.ledger.rows import WHOLE, covers
from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray
from rankbeam.transforms.records.calls.call import Reach

Rows = npt.NDArray[Any]

ROW = np.dtype(
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
COLUMNS = ["key", "results", "distance", "finished_at", "check"]
NONE = -1
"""The number of an answer that the index does not have."""


class IndexPlace(NamedTuple):
    """The position of an answer: the path of its part, a row group, and a row of the group."""

    path: str
    group: int
    row: int


class Columns(Protocol):
    """Columns of rows: an array of ROW, or what makes each of its columns when it is needed."""

    def __getitem__(self, name: str) -> Rows:
        """The column of a name."""


class Index:
    """The rows of all parts, sorted by the hash of their key, and for one key the newest first; it never changes.

    An answer that is whole takes 36 bytes, another one 52. A large index is in files; only while the next one is made,
    33 bytes an answer are in memory.
    """

    def __init__(self, paths: Sequence[str], rows: Columns) -> None:
        self.paths = list(paths)
        order = _order(rows)
        # Single values of a view are read several times as fast as those of NumPy's arrays.
        self._columns = {name: _compact(rows[name], order) for name in ROW.names or ()}
        self._hashes, self._results, self._distances = (self._columns[name] for name in ("hash", "results", "distance"))
        self._places = tuple(self._columns[name] for name in ("part", "group", "row"))

    @property
    def checks(self) -> IntArray:
        """The hashes of all rows."""
        return np.asarray(self._columns["check"])

    def changed(self, paths: Sequence[str], new: Mapping[str, Rows]) -> "Index":
        """The index of other parts: of those here that stay, and of new ones."""
        numbers = {path: number for number, path in enumerate(paths)}
        parts = np.array([numbers.get(path, NONE) for path in self.paths], np.int32)
        return Index(paths, _Changed(self._columns, parts, {numbers[path]: rows for path, rows in new.items()}))

    def places(self, key: str, reach: Reach | None) -> Iterator[IndexPlace]:
        """The positions of answers to a call, the newest first. Entries distinguish keys with equal hashes."""
        digest, hashes = hash(key), self._hashes
        at = bisect_left(hashes, digest)
        while at < len(hashes) and hashes[at] == digest:
            if covers(self._results[at], self._distances[at], reach):
                part, group, row = (column[at] for column in self._places)
                yield IndexPlace(self.paths[part], group, row)
            at += 1

    def newest(self, keys: Sequence[str], reach: Reach | None) -> IntArray:
        """The numbers of the newest answers to many calls, all of one reach; NONE where it does not go far enough."""
        digests, hashes = np.fromiter(map(hash, keys), np.int64, len(keys)), np.asarray(self._hashes)
        if not len(hashes):
            return np.full(len(keys), NONE)
        at = np.minimum(np.searchsorted(hashes, digests), len(hashes) - 1)
        results, distances = np.asarray(self._results)[at], np.asarray(self._distances)[at]
        return np.where((hashes[at] == digests) & _cover(results, distances, reach), at, NONE)

    def in_order(self, numbers: IntArray) -> IntArray:
        """The order of the files for answers."""
        part, group, row = (np.asarray(column)[numbers] for column in self._places)
        return np.lexsort((row, group, part))

    def groups(self, numbers: IntArray) -> Iterator[tuple[str, int, slice, list[int]]]:
        """The row groups of answers that are in the order of the files."""
        part, group, row = (np.asarray(column)[numbers] for column in self._places)
        ends = [*(np.flatnonzero((np.diff(part) != 0) | (np.diff(group) != 0)) + 1).tolist(), len(numbers)]
        for begin, end in pairwise([0, *ends] if len(numbers) else []):
            yield self.paths[part[begin]], int(group[begin]), slice(begin, end), row[begin:end].tolist()


def _compact(column: Rows, order: IntArray) -> memoryview:
    """A column in an order; equal values, such as distances of whole answers, take the memory of one."""
    bits = column.view(f"i{column.itemsize}")
    if len(bits) > 1 and bool((bits == bits[0]).all()):
        return np.broadcast_to(column[:1].copy(), len(column)).data
    return np.frombuffer(spill.mapped([column[order]]), column.dtype).data


def joined(rows: Iterable[Rows]) -> Rows:
    """The rows of all row groups of a part."""
    return np.frombuffer(spill.mapped(rows), ROW)


def indexed(columns: pa.Table, possible: pa.ChunkedArray, group: int) -> Rows:
    """The rows of a row group; `changed` numbers their part."""
    here = np.flatnonzero(possible.to_numpy())
    columns = columns.take(pa.array(here))
    rows = np.zeros(len(here), ROW)
    rows["hash"] = [hash(key) for key in columns.column("key").to_pylist()]
    rows["moment"] = pc.cast(columns.column("finished_at"), pa.int64()).to_numpy()
    rows["check"] = columns.column("check").to_numpy()
    rows["results"] = columns.column("results").to_numpy()
    rows["distance"] = pc.fill_null(columns.column("distance"), np.nan).to_numpy()
    rows["group"], rows["row"] = group, here
    return rows


def _cover(results: IntArray, distances: FloatArray, reach: Reach | None) -> BoolArray:
    """`covers` of many answers."""
    has_none = np.isnan(distances)
    nearest = np.inf if reach is None or reach.distance is None else reach.distance
    is_far = results == WHOLE.results if reach is None else results >= reach.results
    is_near: BoolArray = has_none if reach is None else has_none | (nearest <= distances)
    return is_far & is_near


class _Changed:
    """The columns of the rows that stay, and of new ones, by the number of their part."""

    def __init__(self, columns: Mapping[str, memoryview], parts: Rows, new: Mapping[int, Rows]) -> None:
        self._columns, self._parts, self._new = columns, parts, new
        self._stays = parts[np.asarray(columns["part"])] != NONE

    def __getitem__(self, name: str) -> Rows:
        """The column of a name."""
        column: Rows = np.asarray(self._columns[name])[self._stays]
        if name == "part":
            numbers = [np.full(len(rows), number, np.int32) for number, rows in self._new.items()]
            return np.concatenate([self._parts[column], *numbers])
        return np.concatenate([column, *(rows[name] for rows in self._new.values())])


def _order(rows: Columns) -> IntArray:
    """The order of rows by hash, and of the few that share one by time, with ties broken as merges leave them."""
    hashes = rows["hash"]
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    is_as_before = np.append(False, hashes[1:] == hashes[:-1])
    shared = np.flatnonzero(is_as_before | np.append(is_as_before[1:], False))
    if len(shared):
        some = order[shared]
        keys = [rows[name][some] for name in ("row", "group", "part", "check", "moment", "hash")]
        keys[4] = -keys[4]
        order[shared] = some[np.lexsort(keys)]
    return order
