"""Open tasks never take more memory than is counted, and tasks of any size travel in small batches."""

import json
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from rankbeam.transforms.clients.calls import lane_context, task_batches
from rankbeam.transforms.clients.calls.driver import Driver, OpenCall
from rankbeam.transforms.clients.calls.lane_context import _MOST_BYTES, OutcomeQueue
from rankbeam.transforms.clients.clock import SYSTEM_CLOCK
from rankbeam.transforms.clients.storage.batches import Reference
from rankbeam.transforms.records.calls.steps import Call, Steps, Subject, Task
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.reply import Reply

CONTEXTS, LENGTH = 10, 10_000


@dataclass(frozen=True)
class Judge:
    """A judge of long contexts, each of which is asked about on its own.

    Attributes:
        template: beginning of every prompt.
    """

    template: str

    stage: ClassVar[str] = "judge"
    services: ClassVar[Sequence[str]] = ("model",)

    def steps(self, item: tuple[str, ...]) -> Steps[int]:
        payloads = [json.dumps([self.template, text], ensure_ascii=False) for text in item]
        yield [Call("model", content_key({"payload": payload}), payload) for payload in payloads]
        return 0

    def read(self, call: Call, reply: Reply) -> Any:
        raise NotImplementedError


def task(number: int) -> Task:
    texts = tuple(f"{number} {place} ".ljust(LENGTH, "x") for place in range(CONTEXTS))
    return Task(f"q{number}", "judge", texts, (Subject("judged", f"q{number}", 0, (0,)),))


@pytest.mark.parametrize("template", ["...", "\u2026", "\U0001f600"], ids=["narrow", "wide", "widest"])
def test_open_tasks_hold_no_more_than_is_counted(template: str) -> None:
    open_calls: list[OpenCall] = []

    def started(driver: Driver, number: int) -> None:
        [batch] = task_batches.batches_of([task(number)])
        [row] = task_batches.rows_in([batch])
        driver.start(task_batches.group_of(row), len(row))

    started(Driver("judge", {"judge": Judge(template)}, [].append, print), 0)  # what is imported or cached once
    driver = Driver("judge", {"judge": Judge(template)}, open_calls.append, print)
    tracemalloc.start()
    try:
        for number in range(20):
            started(driver, number)
        traced, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(open_calls) == 20 * CONTEXTS
    assert 0.45 * driver.held_bytes < traced < driver.held_bytes


def test_batches_of_large_tasks_are_small_and_hold_them_all() -> None:
    numbers = range(400)
    batches = list(task_batches.batches_of(map(task, numbers)))
    assert max(batch.nbytes for batch in batches) < 10 << 20
    assert [tasks.name for group in task_batches.groups_in(batches) for tasks in group] == [f"q{n}" for n in numbers]
    references = list(map(Reference.to, batches))
    assert [batch.num_rows for batch in task_batches.distinct(references)] == [batch.num_rows for batch in batches]


@pytest.mark.parametrize("sizes", [[1] * (lane_context._MOST + 1), [_MOST_BYTES, 1]], ids=["count", "bytes"])
def test_a_queue_is_full_by_count_or_by_bytes_and_tells_once_that_it_has_room_again(sizes: list[int]) -> None:
    lengths: list[int] = []
    queue = OutcomeQueue(SYSTEM_CLOCK, lambda: lengths.append(len(queue)))
    for size in sizes:
        assert not queue.is_full
        queue.put(None, size)
    assert queue.is_full
    for left in reversed(range(len(sizes))):
        queue.get()
        assert not queue.is_full
        assert (len(queue), queue.held_bytes) == (left, sum(sizes[len(sizes) - left :]))
    assert lengths == [len(sizes) - 1]
    queue.put(None)
    assert queue.held_bytes == 0
