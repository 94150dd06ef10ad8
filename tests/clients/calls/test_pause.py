"""Pauses of tasks: they take their time on the clock of the calls, cost no call, and end with the lane."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from rankbeam.transforms.clients.calls.fake import FakeRequest, FakeService
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.feed import Feed
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import batches_of, rows_in
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call, CallAnswer, Steps, Subject, Task, pause, results_or_raise
from rankbeam.transforms.records.reply import Reply


class Polls:
    """Asks every minute until the answer is true."""

    stage: ClassVar[str] = "poll"
    services: ClassVar[Sequence[str]] = ("service",)

    def steps(self, item: str) -> Steps[int]:
        for polls in range(1, 100):
            (done,) = results_or_raise((yield [Call("service", None, f'"{item}"')]))
            if done:
                return polls
            yield [pause(60.0)]
        raise AssertionError

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  the Protocol's
        return reply.answer == "true"


def test_tasks_pause_beside_each_other_and_hold_no_slot_meanwhile(tmp_path: Path) -> None:
    service = FakeService(lambda request: request.at_s > 5.5 * 60)
    stage = Stage("poll", {"poll": Polls()}, {"service": service}, {"service": "pool"}, {"pool": Quota(600, 1)}, {})
    tasks = [Task(name, "poll", name, (Subject("poll", name, 0, ()),)) for name in "abc"]
    with VirtualClock() as clock:
        fan_out = FanOut(stage, Ledger(str(tmp_path)), clock)
        fan_out.begin(("pool",), 0, Feed(rows_in(batches_of(tasks)), 3))
        outcomes = [outcome for outcome in fan_out.outcomes() if outcome is not None]

    assert [outcome.value for outcome in outcomes if isinstance(outcome, CallAnswer)] == [7, 7, 7]
    assert sum(usage.calls for usage in fan_out.usage()) == len(service.requests) == 21
    assert max(request.at_s for request in service.requests) < 6.1 * 60
    assert _is_spread(service.requests)


def _is_spread(requests: list[FakeRequest]) -> bool:
    times = sorted(request.at_s for request in requests)
    return all(later - earlier > 0.09 for earlier, later in pairwise(times))
