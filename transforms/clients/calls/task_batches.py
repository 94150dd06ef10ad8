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
"""One row for each name, with its pickled `tasks` and their `work`, which is null if they have several."""

Group = Sequence[Task]  # tasks with the same name: they need the same calls, which are made once

TaskBatch = tuple[str, pa.RecordBatch]  # the name of a work, and rows of its tasks

_Row = tuple[str, str | None, bytes]
# Approximate size of a batch. Flink sorts batches in a few megabytes for each grouping, and refuses larger ones.
_ROWS, _BYTES = 4096, 1 << 20
_SHARDS = 16

batches.register()


def batches_of(tasks: Iterable[Task]) -> Iterator[pa.RecordBatch]:
    yield from _batches((task.name, task.work, _pickled((task,))) for task in tasks)


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
    """The tasks of a row as name, work, item, and subjects, for callers that need few `Task` objects."""
    for name, work, item, subjects in pickle.loads(row):  # noqa: S301  written by a worker of the same job
        yield name, work, item, tuple(map(Subject._make, subjects))


def shard_batch(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Split a batch by a hash of the name: all tasks with the same name are in one shard."""
    names = (name.encode("utf-8", "surrogatepass") for name in batch["name"].to_pylist())
    return split_batch(batch, [zlib.crc32(name) % _SHARDS for name in names])


def distinct(shard: Iterable[Reference]) -> Iterator[pa.RecordBatch]:
    """The rows of a shard, one for each name: tasks with the same work and name become one, with all their subjects.

    Only names, and the tasks of repeated names, are in memory together.
    """
    names = Counter(name for batch in shard for name in batch.batch()["name"].to_pylist())
    repeated = pa.array([name for name, number in names.items() if number > 1], pa.string())
    del names
    groups: dict[str, Group] = {}
    yield from _combine_batches(_unrepeated_rows(repeated, shard, groups))
    joined = ((name, _merge_tasks(group)) for name, group in groups.items())
    yield from _batches((name, tasks[0].work if len(tasks) == 1 else None, _pickled(tasks)) for name, tasks in joined)


def _unrepeated_rows(
    repeated: pa.Array, shard: Iterable[Reference], groups: dict[str, Group]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows whose names are not repeated; add the tasks of the others to `groups`."""
    for reference in shard:
        batch = reference.batch()
        is_repeated = pc.is_in(batch["name"], repeated)
        repeated_rows = batch.filter(is_repeated)
        for name, tasks in zip(repeated_rows["name"].to_pylist(), groups_in([repeated_rows]), strict=True):
            groups[name] = (*groups.get(name, ()), *tasks)
        yield batch.filter(pc.invert(is_repeated)) if repeated_rows.num_rows else batch


def _combine_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine small batches into batches of the usual size."""
    parts: list[pa.RecordBatch] = []
    for batch in batches:
        rows = sum(part.num_rows for part in parts), sum(part.nbytes for part in parts)
        if parts and (rows[0] + batch.num_rows > _ROWS or rows[1] + batch.nbytes > _BYTES):
            yield pa.concat_batches(parts)
            parts = []
        parts += [batch] if batch.num_rows else []
    if parts:
        yield pa.concat_batches(parts)


def split_batch(batch: pa.RecordBatch, lanes: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Split a batch by the lane, or another number, of each row."""
    rows = grouped((lane, row) for row, lane in enumerate(lanes))
    for lane, numbers in sorted(rows.items()):
        yield lane, batch if len(rows) == 1 else batch.take(pa.array(numbers))


def _batches(rows: Iterator[_Row]) -> Iterator[pa.RecordBatch]:
    pending: list[_Row] = []
    pending_bytes = 0
    for row in rows:
        pending.append(row)
        pending_bytes += len(row[-1])
        if len(pending) == _ROWS or pending_bytes >= _BYTES:
            yield _batch(pending)
            pending, pending_bytes = [], 0
    if pending:
        yield _batch(pending)


def _batch(rows: Iterable[_Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def _merge_tasks(tasks: Iterable[Task]) -> Group:
    by_work = grouped((task.work, task) for task in tasks)
    return tuple(
        equal_tasks[-1]._replace(subjects=tuple(subject for task in equal_tasks for subject in task.subjects))
        for equal_tasks in by_work.values()
    )


def _pickled(tasks: Group) -> bytes:
    """Tasks pickled as tuples, which take a quarter of the time and bytes of pickled `Task` objects."""
    rows = [(task.name, task.work, task.item, list(map(tuple, task.subjects))) for task in tasks]
    return pickle.dumps(rows, protocol=pickle.HIGHEST_PROTOCOL)
