"""Tasks between stages: rows of Arrow batches, which a local runner spills; a row becomes a task when it is read."""

import pickle
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.transforms.clients.storage import batches
from rankbeam.transforms.clients.storage.batches import Reference
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.calls.steps import Subject, Task

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("work", pa.string()),
        pa.field("tasks", pa.binary(), nullable=False),
    ]
)
"""One row a name; `tasks` are those of that name, pickled; `work` is theirs, null where they are of several works."""

Group = Sequence[Task]
"""Tasks of one name: they need the same calls, which are made once."""

TaskBatch = tuple[str, pa.RecordBatch]
"""The name of a work, and rows of its tasks."""

_Row = tuple[str, str | None, bytes]
# Of a batch, about. Flink sorts batches in a few megabytes for each grouping, and refuses one that does not fit.
_ROWS, _BYTES = 4096, 1 << 20
_SHARDS = 16

batches.register()


def batches_of(tasks: Iterable[Task]) -> Iterator[pa.RecordBatch]:
    yield from _batches((task.name, task.work, _written((task,))) for task in tasks)


def groups_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Group]:
    return map(group_of, rows_in(batches))


def rows_in(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """The rows of batches, each of which `group_of` turns into tasks."""
    for batch in batches:
        for tasks in batch["tasks"]:
            yield tasks.as_py()


def group_of(row: bytes) -> Group:
    return tuple(Task(name, work, item, subjects) for name, work, item, subjects in fields_of(row))


def fields_of(row: bytes) -> Iterator[tuple[str, str, Any, tuple[Subject, ...]]]:
    """The tasks of a row as name, work, item, and subjects, for many tasks of which most need no object."""
    for name, work, item, subjects in pickle.loads(row):  # noqa: S301  written by a worker of the same job
        yield name, work, item, tuple(map(Subject._make, subjects))


def sharded(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """A batch in parts, by a hash of the name: all tasks of one name are of one shard."""
    names = (name.encode("utf-8", "surrogatepass") for name in batch["name"].to_pylist())
    return dealt(batch, [zlib.crc32(name) % _SHARDS for name in names])


def distinct(shard: Iterable[Reference]) -> Iterator[pa.RecordBatch]:
    """The rows of a shard with one row a name: tasks of one work and one name are one, with all their subjects.

    Only names, and the tasks of repeated ones, are held together.
    """
    names = Counter(name for batch in shard for name in batch.batch()["name"].to_pylist())
    repeated = pa.array([name for name, number in names.items() if number > 1], pa.string())
    del names
    groups: dict[str, Group] = {}
    yield from _combined(_without(repeated, shard, groups))
    joined = ((name, _joined(group)) for name, group in groups.items())
    yield from _batches((name, tasks[0].work if len(tasks) == 1 else None, _written(tasks)) for name, tasks in joined)


def _without(repeated: pa.Array, shard: Iterable[Reference], groups: dict[str, Group]) -> Iterator[pa.RecordBatch]:
    """The rows of names that are not repeated; adds the tasks of the others to `groups`."""
    for row in shard:
        batch = row.batch()
        is_repeated = pc.is_in(batch["name"], repeated)
        again = batch.filter(is_repeated)
        for name, tasks in zip(again["name"].to_pylist(), groups_in([again]), strict=True):
            groups[name] = (*groups.get(name, ()), *tasks)
        yield batch.filter(pc.invert(is_repeated)) if again.num_rows else batch


def _combined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of batches, in batches of the usual size."""
    some: list[pa.RecordBatch] = []
    for batch in batches:
        rows = sum(part.num_rows for part in some), sum(part.nbytes for part in some)
        if some and (rows[0] + batch.num_rows > _ROWS or rows[1] + batch.nbytes > _BYTES):
            yield pa.concat_batches(some)
            some = []
        some += [batch] if batch.num_rows else []
    if some:
        yield pa.concat_batches(some)


def dealt(batch: pa.RecordBatch, lanes: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """A batch in parts, by the lane, or another number, of each row."""
    rows = grouped((lane, row) for row, lane in enumerate(lanes))
    for lane, here in sorted(rows.items()):
        yield lane, batch if len(rows) == 1 else batch.take(pa.array(here))


def _batches(rows: Iterator[_Row]) -> Iterator[pa.RecordBatch]:
    some: list[_Row] = []
    rows_held = 0
    for row in rows:
        some.append(row)
        rows_held += len(row[-1])
        if len(some) == _ROWS or rows_held >= _BYTES:
            yield _batch(some)
            some, rows_held = [], 0
    if some:
        yield _batch(some)


def _batch(rows: Iterable[_Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def _joined(tasks: Iterable[Task]) -> Group:
    by_work = grouped((task.work, task) for task in tasks)
    return tuple(
        same[-1]._replace(subjects=tuple(subject for task in same for subject in task.subjects))
        for same in by_work.values()
    )


def _written(tasks: Group) -> bytes:
    """Tasks as tuples, whose pickles take a quarter of the time and of the bytes of those of tasks."""
    rows = [(task.name, task.work, task.item, list(map(tuple, task.subjects))) for task in tasks]
    return pickle.dumps(rows, protocol=pickle.HIGHEST_PROTOCOL)
