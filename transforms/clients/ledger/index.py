"""The index of a ledger's parts: the small columns of all answers, sorted by the hash of their key."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.ledger.rows import WHOLE, covers
from rankbeam.transforms.clients.storage import spill
from rankbeam.transforms.kernels.arrays import BoolArray, FloatArray, IntArray
from rankbeam.transforms.records.calls.steps import SearchDepth

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
_OFFSETS = {name: field[1] for name, field in (ROW.fields or {}).items()}
_ROWS_AT_ONCE = 1 << 15
COLUMNS = ["key", "results", "distance", "finished_at", "check"]
NONE = -1
"""The number of an answer that the index does not have."""


class IndexPlace(NamedTuple):
    """The position of an answer: the path of its part, a row group, and a row of the group."""

    path: str
    group: int
    row: int


class Index:
    """The rows of all parts, sorted by the hash of their key, and for one key the newest first; it never changes.

    A large index is in a file, 52 bytes an answer, and is made for one range of hashes after the other.
    """

    def __init__(self, paths: Sequence[str], rows: Mapping[str, Rows] | Rows) -> None:
        self.paths = list(paths)
        # Single values of a view are read several times as fast as those of NumPy's arrays.
        self._columns = {name: rows[name].data for name in _OFFSETS}
        self._hashes, self._results, self._distances = (self._columns[name] for name in ("hash", "results", "distance"))
        self._places = tuple(self._columns[name] for name in ("part", "group", "row"))

    @property
    def checks(self) -> IntArray:
        """The hashes of all rows."""
        return np.asarray(self._columns["check"])

    def changed(self, paths: Sequence[str], new: Mapping[str, Rows]) -> "Index":
        """The index of other parts: of those here that stay, and of new ones, whose rows are sorted by hash."""
        numbers = {path: number for number, path in enumerate(paths)}
        parts = np.array([numbers.get(path, NONE) for path in self.paths], np.int32)
        blocks = self._blocks(parts, {numbers[path]: rows for path, rows in new.items()})
        return Index(paths, _columns(blocks, len(self._hashes) + sum(map(len, new.values()))))

    def _blocks(self, parts: Rows, new: Mapping[int, Rows]) -> Iterator[dict[str, Rows]]:
        """The rows that stay, and those of new parts, in order."""
        hashes = [np.asarray(self._hashes), *(rows["hash"] for rows in new.values())]
        count = 1 + sum(map(len, hashes)) // _ROWS_AT_ONCE
        bounds = np.linspace(-(2.0**63), 2.0**63, count + 1)[1:-1].astype(np.int64)
        cuts = [[0, *np.searchsorted(some, bounds).tolist(), len(some)] for some in hashes]
        for block in range(count):
            here, *others = (slice(*cut[block : block + 2]) for cut in cuts)
            old = {name: np.asarray(column[here]) for name, column in self._columns.items()}
            old["part"] = parts[old["part"]]
            stays = old["part"] != NONE
            added = [rows[place] for rows, place in zip(new.values(), others, strict=True)]
            numbers = [np.full(len(rows), number, np.int32) for number, rows in zip(new, added, strict=True)]
            rows = {
                name: np.concatenate([column[stays], *(numbers if name == "part" else (one[name] for one in added))])
                for name, column in old.items()
            }
            order = _order(rows)
            yield {name: column[order] for name, column in rows.items()}

    def places(self, key: str, depth: SearchDepth | None) -> Iterator[IndexPlace]:
        """The positions of answers to a call, the newest first. Entries distinguish keys with equal hashes."""
        digest, hashes = hash(key), self._hashes
        at = bisect_left(hashes, digest)
        while at < len(hashes) and hashes[at] == digest:
            if covers(self._results[at], self._distances[at], depth):
                part, group, row = (column[at] for column in self._places)
                yield IndexPlace(self.paths[part], group, row)
            at += 1

    def newest(self, keys: Sequence[str], depth: SearchDepth | None) -> IntArray:
        """The numbers of the newest answers to many calls, all of one depth; NONE where it does not go far enough."""
        digests, hashes = np.fromiter(map(hash, keys), np.int64, len(keys)), np.asarray(self._hashes)
        if not len(hashes):
            return np.full(len(keys), NONE)
        at = np.minimum(np.searchsorted(hashes, digests), len(hashes) - 1)
        results, distances = np.asarray(self._results)[at], np.asarray(self._distances)[at]
        return np.where((hashes[at] == digests) & _cover(results, distances, depth), at, NONE)

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


def _columns(blocks: Iterable[Mapping[str, Rows]], most: int) -> dict[str, Rows]:
    """The columns of all rows, one after the other in one buffer with room for `most` rows."""
    count = 0

    def pieces() -> Iterator[tuple[int, bytes]]:
        nonlocal count
        for block in blocks:
            for name, offset in _OFFSETS.items():
                yield most * offset + count * ROW[name].itemsize, block[name].tobytes()
            count += len(block["hash"])

    buffer = spill.mapped(pieces())
    return {
        name: np.frombuffer(buffer, ROW[name], count, most * offset if count else 0)
        for name, offset in _OFFSETS.items()
    }


def joined(rows: Iterable[Rows]) -> Rows:
    """The rows of all row groups of a part, sorted by hash."""
    part = np.concatenate([np.empty(0, ROW), *rows])
    return np.frombuffer(spill.mapped([(0, part[np.argsort(part["hash"])].tobytes())]), ROW)


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


def _cover(results: IntArray, distances: FloatArray, depth: SearchDepth | None) -> BoolArray:
    """`covers` of many answers."""
    has_none = np.isnan(distances)
    nearest = np.inf if depth is None or depth.distance is None else depth.distance
    is_far = results == WHOLE.results if depth is None else results >= depth.results
    is_near: BoolArray = has_none if depth is None else has_none | (nearest <= distances)
    return is_far & is_near


def _order(rows: Mapping[str, Rows]) -> IntArray:
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
