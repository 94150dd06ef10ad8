"""Tasks between stages: rows of Arrow batches, which a local runner spills; a row becomes a task when it is read."""

import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from rankbeam.transforms.clients.calls.feed import Group
from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.records.calls.steps import Task

SCHEMA = pa.schema([pa.field("name", pa.string(), nullable=False), pa.field("tasks", pa.binary(), nullable=False)])
"""One row a name; `tasks` are those of that name, pickled."""

TaskBatch = tuple[str, pa.RecordBatch]
"""The name of a work, and rows of its tasks."""

_ROWS, _BYTES = 4096, 8 << 20  # of a batch, about: a task may hold the texts of all its contexts
_SHARDS = 16

batches.register()


def batches_of(tasks: Iterable[Task]) -> Iterator[pa.RecordBatch]:
    """Tasks as rows."""
    yield from _batches((task.name, _written((task,))) for task in tasks)


def groups_in(rows: Iterable[pa.RecordBatch]) -> Iterator[Group]:
    """The tasks of rows, one row after the other."""
    for batch in rows:
        for tasks in batch["tasks"]:
            yield _read(tasks.as_py())


def sharded(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """A batch in parts, by a hash of the name: all tasks of one name are of one shard."""
    rows: dict[int, list[int]] = {}
    for row, name in enumerate(batch["name"].to_pylist()):
        rows.setdefault(zlib.crc32(name.encode("utf-8", "surrogatepass")) % _SHARDS, []).append(row)
    for shard, here in sorted(rows.items()):
        yield shard, batch.take(pa.array(here))


def distinct(shard: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a shard with one row a name: tasks of one work and one name are one, with all their subjects."""
    rows: dict[str, bytes] = {}
    for batch in shard:
        for name, tasks in zip(batch["name"].to_pylist(), batch["tasks"].to_pylist(), strict=True):
            known = rows.get(name)
            rows[name] = tasks if known is None else _written(_joined((*_read(known), *_read(tasks))))
    yield from _batches(iter(rows.items()))


def dealt(batch: pa.RecordBatch, lanes: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a batch, assigned to lanes.

    Args:
        batch: distinct rows.
        lanes: for each row, its lane.
    """
    of_lanes: dict[int, list[int]] = {}
    for row, lane in enumerate(lanes):
        of_lanes.setdefault(lane, []).append(row)
    for lane, here in sorted(of_lanes.items()):
        yield lane, batch if len(of_lanes) == 1 else batch.take(pa.array(here))


def _batches(rows: Iterator[tuple[str, bytes]]) -> Iterator[pa.RecordBatch]:
    some: list[tuple[str, bytes]] = []
    held = 0
    for row in rows:
        some.append(row)
        held += len(row[1])
        if len(some) == _ROWS or held >= _BYTES:
            yield _batch(some)
            some, held = [], 0
    if some:
        yield _batch(some)


def _batch(rows: Iterable[tuple[str, bytes]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def _joined(tasks: Iterable[Task]) -> Group:
    by_work: dict[str, Task] = {}
    for task in tasks:
        known = by_work.get(task.work)
        subjects = task.subjects if known is None else tuple(chain(known.subjects, task.subjects))
        by_work[task.work] = replace(task, subjects=subjects)
    return tuple(by_work.values())


def _written(tasks: Group) -> bytes:
    return pickle.dumps(tuple(tasks), protocol=pickle.HIGHEST_PROTOCOL)


def _read(tasks: bytes) -> Group:
    group: Group = pickle.loads(tasks)  # noqa: S301  written by a worker of the same job
    return group
