"""The tasks of a lane on their way from the bundle's thread, the only one that may read them, to the event loop.

batches of tasks ─► index of the ledger ─┬─ no answer ────────────────────────────────────► rows for the event loop
                                         └─ answer ─► files, in order ─┬─ a value ─────► values of many tasks
                                                                       └─ none, damaged ─► rows for the event loop

Tasks with one call that the ledger answers need neither event loop nor driver: many answers are read at a time.
Whatever needs a decision goes to the driver, which knows all rules.
"""

from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rankbeam.transforms.clients.calls.driver import positions_of
from rankbeam.transforms.clients.calls.lane_context import CallSums
from rankbeam.transforms.clients.calls.task_batches import Group, fields_of, group_of
from rankbeam.transforms.clients.ledger import Lookup
from rankbeam.transforms.clients.ledger.index import NONE, Index
from rankbeam.transforms.clients.ledger.rows import StoredRow
from rankbeam.transforms.clients.storage.batches import Reference
from rankbeam.transforms.kernels.arrays import IntArray
from rankbeam.transforms.records.calls.steps import OneCall, RecalledTasks, Subject, Work

_ROWS_AT_ONCE, _RECALLED_BYTES_AT_ONCE = 200_000, 64 << 20
"""The most tasks whose answers are read together, in the order of the files, so that each file is read once."""
_AT_ONCE, _BYTES_AT_ONCE = 128, 1 << 20
_MOST_READY = 512


class Recall:
    """Recalls answers for the tasks of a lane; only the bundle's thread uses it."""

    def __init__(self, works: Mapping[str, Work[Any]], references: Iterable[Reference]) -> None:
        self._works = {name: work for name, work in works.items() if isinstance(work, OneCall)}
        self._references = references  # read several times
        self._numbers: list[IntArray] = []
        self._rejected: deque[bytes] = deque()
        self._read: Iterator[RecalledTasks] = iter(())
        self.sums = CallSums()
        self.warnings: dict[str, str] = {}  # by work
        # Number of calls that the ledger has answered so far, by service; their tasks need not be taken.
        self.counted = Tally(dict.fromkeys((work.service for work in self._works.values()), 0))
        self.has_ended = True

    def look_up(self, lookup: Lookup) -> int:
        """Look up all tasks, before `missed` and `read`; returns their number."""
        index = lookup.index
        self._numbers = [self._numbers_of(reference.batch(), index) for reference in self._references]
        if any((numbers != NONE).any() for numbers in self._numbers):
            self.has_ended = False
            self._read = self._values(lookup, index)
        return sum(map(len, self._numbers))

    def missed(self) -> Iterator[bytes]:
        """The rows of tasks that the ledger does not answer."""
        if self._numbers and all((numbers != NONE).all() for numbers in self._numbers):
            return
        for number, reference in enumerate(self._references):
            tasks = reference.batch()["tasks"]
            if self._numbers:
                tasks = tasks.filter(pa.array(self._numbers[number] == NONE))
            yield from (row.as_py() for row in tasks)

    def rejected(self) -> bytes | None:
        """Take the row of a task whose answer could not be used; None if no such task waits now."""
        return self._rejected.popleft() if self._rejected else None

    def read(self) -> RecalledTasks | None:
        """The values of some more tasks; None at the end."""
        recalled = next(self._read, None)
        self.has_ended = recalled is None
        return recalled

    def _numbers_of(self, batch: pa.RecordBatch, index: Index) -> IntArray:
        numbers = np.full(batch.num_rows, NONE)
        if not self._works:
            return numbers
        named = batch["work"].dictionary_encode()
        for code, name in enumerate(named.dictionary.to_pylist()):
            if (work := self._works.get(name)) is not None:
                rows = np.flatnonzero(named.indices.fill_null(NONE).to_numpy() == code)
                names = batch["name"].take(pa.array(rows)).to_pylist()
                numbers[rows] = index.newest(names, work.depth)
        return numbers

    def _values(self, lookup: Lookup, index: Index) -> Iterator[RecalledTasks]:
        for tasks, numbers in self._windows():
            order = index.in_order(numbers)
            in_order = tasks.take(pa.array(order))
            for here, stored in lookup.read_at(index, numbers[order]):
                yield from self._recall_values(in_order[here].to_pylist(), stored)

    def _windows(self) -> Iterator[tuple[pa.Array, IntArray]]:
        """The tasks that the ledger answers, in groups that are read together, with the numbers of their answers."""
        tasks: list[pa.Array] = []
        numbers: list[IntArray] = []
        for batch_numbers, reference in zip(self._numbers, self._references, strict=True):
            is_known = batch_numbers != NONE
            tasks.append(reference.batch()["tasks"].filter(pa.array(is_known)))
            numbers.append(batch_numbers[is_known])
            if sum(map(len, numbers)) >= _ROWS_AT_ONCE or sum(task.nbytes for task in tasks) >= _RECALLED_BYTES_AT_ONCE:
                yield pa.concat_arrays(tasks), np.concatenate(numbers)
                tasks, numbers = [], []
        if numbers:
            yield pa.concat_arrays(tasks), np.concatenate(numbers)

    def _recall_values(self, rows: Sequence[bytes], stored: Sequence[StoredRow | None]) -> Iterator[RecalledTasks]:
        """The values of tasks, by work; a task without a value is rejected."""
        by_work: dict[str, list[tuple[bytes, tuple[Subject, ...], StoredRow]]] = {}
        for row, answer in zip(rows, stored, strict=True):
            ((key, work, _, subjects),) = fields_of(row)
            if answer is None or not answer.answers(key, self._works[work].depth):
                self._rejected.append(row)
            else:
                by_work.setdefault(work, []).append((row, subjects, answer))
        for name, known in by_work.items():
            service = self._works[name].service
            answers = [answer.answer for _, _, answer in known]
            values = self._works[name].recall(answers)
            if name not in self.warnings and (warning := self._works[name].warning(answers)) is not None:
                self.warnings[name] = warning
            recalled: list[tuple[int, Subject]] = []
            for position, ((row, subjects, answer), has_value) in enumerate(
                zip(known, values.is_valid().to_pylist(), strict=True)
            ):
                if has_value:
                    self.counted[service] += 1
                    self.sums.add(service, positions_of(subjects), answer.attempts, answer.tokens, hits=1)
                    recalled += ((position, subject) for subject in subjects)
                else:
                    self._rejected.append(row)
            yield RecalledTasks([subject for _, subject in recalled], [place for place, _ in recalled], values)


class Feed:
    """A bounded queue of rows of tasks; a row becomes a group of tasks when it is taken."""

    def __init__(self, rows: Iterable[bytes], number: int = 0, recall: Recall | None = None) -> None:
        self._rows: Iterator[bytes] = iter(rows)
        self._number, self._taken = number, 0
        self.recall = recall or Recall({}, ())
        self._read_bytes = self._taken_bytes = 0  # only one thread changes each of them
        self._ready: deque[bytes] = deque()
        self.is_read = False

    @property
    def has_ended(self) -> bool:
        return self.is_read and not self._ready

    @property
    def left(self) -> int:
        """Number of groups that have been neither taken nor recalled yet."""
        return 0 if self.has_ended else max(0, self._number - self._taken - self.recall.counted.total())

    @property
    def held_bytes(self) -> int:
        """Bytes of the rows that were read but not taken."""
        return self._read_bytes - self._taken_bytes

    def fill(self, most_bytes: int) -> bool:
        """Read some rows, if there is room for them; returns whether the lane has news."""
        if self.is_read or len(self._ready) >= _MOST_READY or self.held_bytes >= most_bytes:
            return False
        before, end = self._read_bytes, self._read_bytes + _BYTES_AT_ONCE
        for _ in range(_AT_ONCE):
            row = next(self._rows, None) or self.recall.rejected()
            if row is None:
                self.is_read = self.recall.has_ended
                break
            self._read_bytes += len(row)
            self._ready.append(row)
            if self._read_bytes >= end:
                break
        return self._read_bytes > before or self.is_read

    def look_up(self, lookup: Lookup) -> None:
        self._number += self.recall.look_up(lookup)

    def read_recalled(self) -> RecalledTasks | None:
        """Tasks that the ledger answers, which need not be taken; None if there are no more."""
        return None if self.recall.has_ended else self.recall.read()

    def take(self, has_room: Callable[[], bool]) -> Iterator[tuple[Group, int]]:
        """Take some groups one by one while there is room, each with the bytes of its row."""
        most, end = self._taken + _AT_ONCE, self._taken_bytes + _BYTES_AT_ONCE
        while self._ready and self._taken < most and self._taken_bytes < end and has_room():
            row = self._ready.popleft()
            self._taken += 1
            self._taken_bytes += len(row)
            yield group_of(row), len(row)
