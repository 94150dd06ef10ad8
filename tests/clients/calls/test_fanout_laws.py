"""Whatever tasks share calls, fill the memory, or are known to the ledger: a fan-out ends, and makes no call twice."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, ClassVar
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from support.services import Echo, feed
from support.strategies import lists_up_to

from rankbeam.transforms.clients.calls import fanout, hits, lane_context, lanes
from rankbeam.transforms.clients.calls import feed as feeds
from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Call, CallAnswer, Steps, Subject, Task, results_or_raise
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.reply import Reply

Questions = list[list[int]]
"""The questions of each step of a task."""

LIMITS: Mapping[ModuleType, Mapping[str, int]] = {
    feeds: {"_AT_ONCE": 3, "_BYTES_AT_ONCE": 2000, "_MOST_READY": 5},
    fanout: {"_MOST_READY_BYTES": 4000},
    lane_context: {"_MOST": 2, "_MOST_BYTES": 8000, "_MOST_TASK_BYTES": 12_000},
    lanes: {"_HITS_AT_ONCE": 7},
    hits: {"_READ_AT_ONCE": 2, "_MOST_ADDED": 3},
}
"""As the limits of the product, but so small that few tasks reach each of them."""


@dataclass(frozen=True)
class Several:
    """Work of several steps, each with several calls, whose value is what was answered."""

    stage: ClassVar[str] = "judge"
    services: ClassVar[Sequence[str]] = ("echo",)

    def steps(self, item: tuple[Questions, bytes]) -> Steps[list[str]]:
        questions, _ = item
        answers: list[str] = []
        for step in questions:
            payloads = [json.dumps({"query": f"q{question}"}) for question in step]
            calls = [Call("echo", content_key({"query": payload}), payload) for payload in payloads]
            answers += results_or_raise((yield calls))
        return answers

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  every reply is read alike
        return json.loads(reply.answer)["query"]


def tasks_of(all_questions: Sequence[tuple[Questions, int]]) -> list[Task]:
    return [
        Task(f"t{number}", "several", (questions, bytes(size)), (Subject("judged", f"t{number}", 0, (0,)),))
        for number, (questions, size) in enumerate(all_questions)
    ]


def run(shares: Sequence[Sequence[Task]], folder: str) -> tuple[dict[str, Any], Echo]:
    """The values of tasks in several lanes, and the service that was asked."""
    service, quota = Echo(), Quota(requests_per_minute=60_000, lanes=len(shares))
    stage = Stage("judge", {"several": Several()}, {"echo": service}, {"echo": "pool"}, {"pool": quota}, {})
    values: dict[str, Any] = {}
    with VirtualClock() as clock:
        fan_out = FanOut(stage, Ledger(folder), clock)
        for number, tasks in enumerate(shares):
            fan_out.begin(("pool",), number, feed(tasks))
        idle = 0
        for outcome in fan_out.outcomes():
            idle = idle + 1 if outcome is None else 0
            assert idle < 2000, f"nothing comes after {len(values)} outcomes"
            if outcome is not None:
                assert isinstance(outcome, CallAnswer)
                values[outcome.name] = outcome.value
    return values, service


TASKS = lists_up_to(
    40,
    st.tuples(
        st.lists(st.lists(st.integers(0, 12), max_size=5), max_size=3),
        st.sampled_from([0, 100, 3000]),
    ),
)


@given(all_questions=TASKS, before=st.integers(0, 40), count=st.integers(1, 3))
def test_every_task_has_its_value_and_no_question_is_asked_twice(
    all_questions: list[tuple[Questions, int]], before: int, count: int
) -> None:
    tasks = tasks_of(all_questions)
    expected = {
        f"t{number}": [f"q{question}" for question in chain(*questions)]
        for number, (questions, _) in enumerate(all_questions)
    }
    with ExitStack() as stack, TemporaryDirectory() as folder:
        for module, limits in LIMITS.items():
            for name, limit in limits.items():
                stack.enter_context(patch.object(module, name, limit))
        path = str(Path(folder))
        earlier, first = run([tasks[:before]], path)
        values, second = run([tasks[number::count] for number in range(count)], path)
    assert earlier == {name: value for name, value in expected.items() if int(name[1:]) < before}
    assert values == expected
    sent = [question for question, _ in (*first.begun, *second.begun)]
    assert sorted(sent) == sorted({question for value in expected.values() for question in value})
