"""A lane's memory depends on the bytes of its tasks (read, in flight, or done and not taken), not on their number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from support.services import Echo, feed, stage, taking

from rankbeam.pipelines.experiment.file.quotas import QuotaModel, quota_of
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.feed import Feed
from rankbeam.transforms.clients.calls.lane_context import FanOutContext
from rankbeam.transforms.clients.calls.lanes import LaneRun
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import batches_of, distinct, groups_in, rows_in
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.models.offline import Lexical
from rankbeam.transforms.clients.storage.batches import Reference
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call, Steps, Subject, Task, results_or_raise
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.reply import Reply


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


SIZE, TASKS = 1 << 20, 250


@dataclass(frozen=True)
class Keep:
    """Work that returns its long item, after a short call."""

    stage: ClassVar[str] = "judge"
    services: ClassVar[Sequence[str]] = ("echo",)

    def steps(self, item: bytes) -> Steps[bytes]:
        results_or_raise((yield [Call("echo", content_key({"item": item[:9].decode()}), '{"query": ""}')]))
        return item

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  every reply is read alike
        return reply.answer


def tasks(most: int = TASKS) -> Iterator[Task]:
    for number in range(most):
        yield Task(f"t{number}", "keep", b"%9d" % number + bytes(SIZE), (Subject("judged", f"q{number}", 0, (0,)),))


@pytest.mark.long
@pytest.mark.parametrize("lanes", [1, 4])
def test_tasks_are_read_as_others_are_done(lanes: int, clock: VirtualClock, tmp_path: Path) -> None:
    read = 0

    def counted(rows: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal read
        for row in rows:
            read += 1
            yield row

    quota = Quota(requests_per_minute=600_000, lanes=lanes)
    service = Echo(taking(1.0))
    stage = Stage("judge", {"keep": Keep()}, {"echo": service}, {"echo": "pool"}, {"pool": quota}, {})
    fan_out = FanOut(stage, Ledger(str(tmp_path)), clock)
    rows = rows_in(batches_of(tasks()))
    for lane in range(lanes):
        fan_out.begin(("pool",), lane, Feed(counted(rows), TASKS // lanes))
    taken = most = 0
    for outcome in fan_out.outcomes():
        most = max(most, read - taken)
        taken += outcome is not None
    assert taken == read == TASKS
    assert most * SIZE < 140 << 20
    assert 60 << 20 <= service.most_open * SIZE <= 64 << 20


@pytest.mark.long
@pytest.mark.parametrize("number", [1, 63, 64, 65, 70, 80])
def test_a_second_run_ends_wherever_the_memory_of_its_tasks_is_full(
    number: int, clock: VirtualClock, tmp_path: Path
) -> None:
    services = [Echo(), Echo()]
    for service in services:
        stage = Stage(
            "judge",
            {"keep": Keep()},
            {"echo": service},
            {"echo": "pool"},
            {"pool": Quota(requests_per_minute=600_000)},
            {},
        )
        fan_out = FanOut(stage, Ledger(str(tmp_path)), clock)
        fan_out.begin(("pool",), 0, Feed(rows_in(batches_of(tasks(number))), number))
        outcomes: list[bool] = []
        for outcome in fan_out.outcomes():
            outcomes.append(outcome is not None)
            assert len(outcomes) < 2000 or any(outcomes[-2000:]), (
                f"nothing comes after {sum(outcomes)} of {number} outcomes"
            )
        assert sum(outcomes) == number
    assert [len(service.begun) for service in services] == [number, 0]


@dataclass(frozen=True)
class Grow:
    """Work whose second step is eight times as large as the first one; counts the bytes of open payloads."""

    open_bytes: list[int]  # now, and at most

    stage: ClassVar[str] = "judge"
    services: ClassVar[Sequence[str]] = ("echo",)

    def steps(self, item: int) -> Steps[None]:
        for calls in (1, 8):
            self.open_bytes[0] += calls * SIZE // 8
            self.open_bytes[1] = max(self.open_bytes)
            keys = [content_key({"item": item, "call": call, "of": calls}) for call in range(calls)]
            results_or_raise((yield [Call("echo", key, '{"query": ""}'.ljust(SIZE // 8)) for key in keys]))
            self.open_bytes[0] -= calls * SIZE // 8

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  every reply is read alike
        return reply.answer


@pytest.mark.long
def test_tasks_that_grow_stay_within_the_memory_of_open_tasks_also_if_the_ledger_answers(
    clock: VirtualClock, tmp_path: Path
) -> None:
    most = []
    for _ in range(2):
        work = Grow([0, 0])
        stage = Stage(
            "judge",
            {"grow": work},
            {"echo": Echo(taking(1.0))},
            {"echo": "pool"},
            {"pool": Quota(requests_per_minute=600_000)},
            {},
        )
        fan_out = FanOut(stage, Ledger(str(tmp_path)), clock)
        rows = (
            Task(f"t{number}", "grow", number, (Subject("judged", f"q{number}", 0, (0,)),)) for number in range(300)
        )
        fan_out.begin(("pool",), 0, Feed(rows_in(batches_of(rows)), 300))
        assert sum(outcome is not None for outcome in fan_out.outcomes()) == 300
        most.append(work.open_bytes[1])
    assert max(most) < 80 << 20


def test_lanes_have_equal_shares_of_the_memory_for_open_tasks(clock: VirtualClock, tmp_path: Path) -> None:
    shared = FanOutContext(stage({"echo": Echo()}, Quota(600, lanes=4)), Ledger(str(tmp_path)), clock, print)
    for lane in range(4):
        LaneRun(("pool",), lane, feed([]), shared)
    assert shared.most_task_bytes == 16 << 20


def test_a_model_of_this_process_has_one_lane() -> None:
    assert quota_of(Lexical.default_quota, QuotaModel()).lanes == 1


def test_rows_of_one_name_are_joined_wherever_they_stand_and_others_are_kept() -> None:
    def of(name: str, query: int) -> Task:
        return Task(name, "keep", name, (Subject("judged", f"q{query}", 0, (0,)),))

    batches = [[of("a", 1), of("b", 2)], [of("c", 3), of("a", 4)], [of("b", 5)], [of("d", 6)]]
    shard = [Reference.to(batch) for some in batches for batch in batches_of(some)]
    joined = {
        group[0].name: [subject.query_id for task in group for subject in task.subjects]
        for group in groups_in(distinct(shard))
    }
    assert joined == {"a": ["q1", "q4"], "b": ["q2", "q5"], "c": ["q3"], "d": ["q6"]}
