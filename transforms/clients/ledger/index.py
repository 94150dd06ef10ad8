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
NONE = -1  # used as the number of an answer that the index does not have


class IndexPlace(NamedTuple):
    """The position of an answer: the path of its part, a row group, and a row of the group."""

    path: str
    group: int
    row: int


class Index:
    """The rows of all parts, sorted by the hash of their key and, for equal keys, from new to old; it never changes.

    A large index is in a file, with 52 bytes for each answer, and is made one range of hashes at a time.
    """

    def __init__(self, paths: Sequence[str], rows: Mapping[str, Rows] | Rows) -> None:
        self.paths = list(paths)
        # Reading single values is several times as fast from a memory view as from a NumPy array.
        self._columns = {name: rows[name].data for name in _OFFSETS}
        self._hashes, self._results, self._distances = (self._columns[name] for name in ("hash", "results", "distance"))
        self._places = tuple(self._columns[name] for name in ("part", "group", "row"))

    @property
    def checks(self) -> IntArray:
        return np.asarray(self._columns["check"])

    def changed(self, paths: Sequence[str], new: Mapping[str, Rows]) -> "Index":
        """The index of these parts: those of this index that stay, and new ones, whose rows are sorted by hash."""
        numbers = {path: number for number, path in enumerate(paths)}
        parts = np.array([numbers.get(path, NONE) for path in self.paths], np.int32)
        blocks = self._blocks(parts, {numbers[path]: rows for path, rows in new.items()})
        return Index(paths, _columns(blocks, len(self._hashes) + sum(map(len, new.values()))))

    def _blocks(self, parts: Rows, new: Mapping[int, Rows]) -> Iterator[dict[str, Rows]]:
        """The rows that stay, and those of new parts, in order."""
        hashes = [np.asarray(self._hashes), *(rows["hash"] for rows in new.values())]
        count = 1 + sum(map(len, hashes)) // _ROWS_AT_ONCE
        bounds = np.linspace(-(2.0**63), 2.0**63, count + 1)[1:-1].astype(np.int64)
        cuts = [[0, *np.searchsorted(part, bounds).tolist(), len(part)] for part in hashes]
        for block in range(count):
            old_slice, *new_slices = (slice(*cut[block : block + 2]) for cut in cuts)
            old = {name: np.asarray(column[old_slice]) for name, column in self._columns.items()}
            old["part"] = parts[old["part"]]
            stays = old["part"] != NONE
            added = [rows[piece] for rows, piece in zip(new.values(), new_slices, strict=True)]
            numbers = [np.full(len(rows), number, np.int32) for number, rows in zip(new, added, strict=True)]
            rows = {
                name: np.concatenate([column[stays], *(numbers if name == "part" else (part[name] for part in added))])
                for name, column in old.items()
            }
            order = _order(rows)
            yield {name: column[order] for name, column in rows.items()}

    def places(self, key: str, depth: SearchDepth | None) -> Iterator[IndexPlace]:
        """The positions of answers to a call, the newest first; the hash of another call's key may be the same."""
        digest, hashes = hash(key), self._hashes
        row_number = bisect_left(hashes, digest)
        while row_number < len(hashes) and hashes[row_number] == digest:
            if covers(self._results[row_number], self._distances[row_number], depth):
                part, group, row = (column[row_number] for column in self._places)
                yield IndexPlace(self.paths[part], group, row)
            row_number += 1

    def newest(self, keys: Sequence[str], depth: SearchDepth | None) -> IntArray:
        """The numbers of the newest answers to many calls of one depth; NONE if the answer does not go that deep."""
        digests, hashes = np.fromiter(map(hash, keys), np.int64, len(keys)), np.asarray(self._hashes)
        if not len(hashes):
            return np.full(len(keys), NONE)
        row_numbers = np.minimum(np.searchsorted(hashes, digests), len(hashes) - 1)
        results, distances = np.asarray(self._results)[row_numbers], np.asarray(self._distances)[row_numbers]
        return np.where((hashes[row_numbers] == digests) & _cover(results, distances, depth), row_numbers, NONE)

    def in_order(self, numbers: IntArray) -> IntArray:
        """The permutation that sorts answers by their positions in the files."""
        part, group, row = (np.asarray(column)[numbers] for column in self._places)
        return np.lexsort((row, group, part))

    def groups(self, numbers: IntArray) -> Iterator[tuple[str, int, slice, list[int]]]:
        """The row groups of answers that are sorted by their positions in the files."""
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

    buffer = spill.join_pieces(pieces())
    return {
        name: np.frombuffer(buffer, ROW[name], count, most * offset if count else 0)
        for name, offset in _OFFSETS.items()
    }


def join_rows(rows: Iterable[Rows]) -> Rows:
    """The rows of all row groups of a part, sorted by hash."""
    part = np.concatenate([np.empty(0, ROW), *rows])
    return np.frombuffer(spill.join_pieces([(0, part[np.argsort(part["hash"])].tobytes())]), ROW)


def index_rows(columns: pa.Table, possible: pa.ChunkedArray, group: int) -> Rows:
    """The rows of a row group; `changed` numbers their part."""
    row_numbers = np.flatnonzero(possible.to_numpy())
    columns = columns.take(pa.array(row_numbers))
    rows = np.zeros(len(row_numbers), ROW)
    rows["hash"] = [hash(key) for key in columns.column("key").to_pylist()]
    rows["moment"] = pc.cast(columns.column("finished_at"), pa.int64()).to_numpy()
    rows["check"] = columns.column("check").to_numpy()
    rows["results"] = columns.column("results").to_numpy()
    rows["distance"] = pc.fill_null(columns.column("distance"), np.nan).to_numpy()
    rows["group"], rows["row"] = group, row_numbers
    return rows


def _cover(results: IntArray, distances: FloatArray, depth: SearchDepth | None) -> BoolArray:
    """The vectorized form of `covers`."""
    has_none = np.isnan(distances)
    nearest = np.inf if depth is None or depth.distance is None else depth.distance
    is_far = results == WHOLE.results if depth is None else results >= depth.results
    is_near: BoolArray = has_none if depth is None else has_none | (nearest <= distances)
    return is_far & is_near


def _order(rows: Mapping[str, Rows]) -> IntArray:
    """The order of rows by hash, then by time, with ties broken in a way that merges do not change."""
    hashes = rows["hash"]
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    is_as_before = np.append(False, hashes[1:] == hashes[:-1])
    shared = np.flatnonzero(is_as_before | np.append(is_as_before[1:], False))
    if len(shared):
        tied = order[shared]
        keys = [rows[name][tied] for name in ("row", "group", "part", "check", "moment", "hash")]
        keys[4] = -keys[4]
        order[shared] = tied[np.lexsort(keys)]
    return order
