"""The vectors of documents or chunks: one file that is mapped into memory, built once, and stored with other indexes.

Vectors are written as they arrive, so that memory does not depend on their number.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib.format import open_memmap

from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.storage import parquet
from rankbeam.transforms.kernels.arrays import BoolArray, IntArray, SingleArray
from rankbeam.transforms.kernels.search.nearest import unit_length
from rankbeam.transforms.records.errors import InputError

_VECTORS, _MISSING = "vectors.npy", "missing.npy"
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class Matrix:
    """Vectors to compare with those of queries."""

    vectors: SingleArray  # float32[u, d], of length 1, or zeros if missing; pages are read when they are used
    missing: IntArray  # int64[m], ascending: the rows without a vector, or with zeros, which have no direction

    @classmethod
    def of(cls, folder: Path) -> "Matrix":
        return cls(np.load(folder / _VECTORS, mmap_mode="r"), np.load(folder / _MISSING))


class Writer:
    """Writes a matrix into a folder."""

    def __init__(self, folder: Path, rows: int) -> None:
        self._folder, self._has_vector = folder, np.zeros(rows, np.bool_)
        self._vectors: SingleArray | None = None

    def add(self, rows: IntArray, vectors: SingleArray) -> None:
        """Write float32[n, d] vectors of any length into int64[n] rows; all must have the same d."""
        if self._vectors is None:
            shape = (len(self._has_vector), vectors.shape[1])
            path = self._folder / _VECTORS
            self._vectors = open_memmap(path, "w+", np.float32, shape)
            if hasattr(os, "posix_fallocate"):  # else a full disk would kill the process that writes to the mapped file
                with path.open("r+b") as file:
                    os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        if vectors.shape[1] != self._vectors.shape[1]:
            widths = f"{self._vectors.shape[1]:,} and {vectors.shape[1]:,}"
            raise InputError(f"embeddings have {widths} components; all must have the same number")
        units = unit_length(vectors)
        self._vectors[rows] = units
        self._has_vector[rows] = units.any(axis=1)

    def end(self) -> None:
        if self._vectors is None:
            np.save(self._folder / _VECTORS, np.zeros((len(self._has_vector), 1), np.float32))
        elif isinstance(self._vectors, np.memmap):
            self._vectors.flush()
        np.save(self._folder / _MISSING, np.flatnonzero(~self._has_vector))


def write_all(folder: Path, rows: int, vectors: Iterable[SingleArray | None]) -> None:
    """Write the vector of every row, in order; None for a row without one."""
    writer = Writer(folder, rows)
    remaining, first = iter(vectors), 0
    while block := list(islice(remaining, _ROWS_AT_ONCE)):
        positions = [position for position, vector in enumerate(block) if vector is not None]
        if positions:
            rows_of_block = np.stack([vector for vector in block if vector is not None])
            writer.add(first + np.array(positions, np.int64), rows_of_block)
        first += len(block)
    writer.end()


def write_of_file(folder: Path, ids: pa.StringArray, path: str) -> None:
    """Write the vectors of these ids from a Parquet file."""
    writer, count = Writer(folder, len(ids)), np.zeros(len(ids), np.int32)
    for row_ids, vectors in vectors_in(path):
        positions = pc.index_in(row_ids, value_set=ids)
        known = np.asarray(positions.is_valid())
        if known.any():
            rows = positions.drop_null().to_numpy().astype(np.int64)
            np.add.at(count, rows, 1)
            if (count[rows] > 1).any():
                raise repeated_id(ids[int(rows[count[rows] > 1][0])].as_py(), path)
            try:
                writer.add(rows, vectors[known])
            except InputError as error:
                raise InputError(error.problem, path=path) from error
    if len(ids) and not count.any():
        raise InputError(f"none of the {len(ids):,} documents or chunks has a vector here, by its id", path=path)
    writer.end()


def repeated_id(name: str, path: str) -> InputError:
    return InputError(f"{name!r} has more than one vector; ids must differ", path=path)


def vectors_in(path: str) -> Iterator[tuple[pa.StringArray, SingleArray]]:
    """Ids and vectors in Parquet files, some rows at a time, without rows that lack a vector."""
    for file in sources.expand(path):
        row = 1
        with parquet.open_file(file) as opened:
            names = opened.schema_arrow.names
            if not {"id", "vector"} <= set(names):
                problem = f"vectors are columns id and vector; found {', '.join(names) or 'none'}"
                raise InputError(problem, path=file)
            for batch in opened.iter_batches(_ROWS_AT_ONCE, columns=["id", "vector"]):
                is_present = pc.and_(batch["id"].is_valid(), batch["vector"].is_valid())
                vectors = _rows_of(file, row, batch["vector"], np.asarray(is_present))
                yield batch["id"].cast(pa.string()).filter(is_present), vectors
                row += batch.num_rows


def _rows_of(file: str, first: int, column: pa.Array, is_present: BoolArray) -> SingleArray:
    """float32[n, d]: the vectors of a column that are present."""
    if not (
        pa.types.is_list(column.type) or pa.types.is_large_list(column.type) or pa.types.is_fixed_size_list(column.type)
    ):
        raise InputError(f"vectors are lists of numbers; the column vector holds {column.type}", path=file)
    lines = first + np.flatnonzero(is_present)
    present = column.filter(pa.array(is_present))
    widths = pc.list_value_length(present).to_numpy(zero_copy_only=False)
    if not len(present):
        return np.zeros((0, 0), np.float32)
    problem = f"the vector does not have {widths[0]:,} components, as the others do"
    _refuse(file, lines, np.not_equal(widths, widths[0]), problem)
    numbers = present.flatten().cast(pa.float32(), safe=False).to_numpy(zero_copy_only=False)
    vectors: SingleArray = numbers.reshape(len(present), int(widths[0]))
    _refuse(
        file,
        lines,
        np.asarray(~np.isfinite(vectors).all(axis=1)),
        "the vector contains a value that is not a finite number",
    )
    return vectors


def _refuse(file: str, lines: IntArray, bad: BoolArray, problem: str) -> None:
    if bad.any():
        raise InputError(problem, path=file, line=int(lines[int(np.argmax(bad))]))
