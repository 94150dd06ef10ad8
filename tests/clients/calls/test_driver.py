"""The driver: equal calls are one, every task has its outcomes, and what tasks hold is counted to the byte."""

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rankbeam.transforms.clients.calls.driver import BatchPending, Driver, OpenCall, Outcome
from rankbeam.transforms.records.calls.steps import (
    Call,
    CallAnswer,
    FailedTask,
    SearchDepth,
    Steps,
    Subject,
    Task,
    results_or_raise,
)
from rankbeam.transforms.records.errors import CallError, Failure, FailureKind
from rankbeam.transforms.records.reply import Reply

ERROR = CallError(FailureKind.BLOCKED, "refused", 2)


@dataclass(frozen=True)
class Ask:
    """Work that makes the calls of each step; its value is what the last step brought."""

    stage: ClassVar[str] = "judge"
    services: ClassVar[Sequence[str]] = ("service",)

    begun: list[Steps[Any]] = field(default_factory=list)

    def steps(self, item: Sequence[Sequence[Call]]) -> Steps[Any]:
        self.begun.append(self.each_of(item))
        return self.begun[-1]

    def each_of(self, item: Sequence[Sequence[Call]]) -> Steps[Any]:
        values: Sequence[Any] = ()
        for calls in item:
            values = results_or_raise((yield list(calls)))
        return list(values)

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  every reply is read alike
        if reply.answer == "bad":
            raise ERROR
        return reply.answer


@dataclass
class Driven:
    """A driver, the calls that it made, and the outcomes of its tasks with the bytes that they held."""

    open_calls: list[OpenCall] = field(default_factory=list)
    outcomes: list[tuple[Outcome, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = Ask()
        emit = lambda outcome, handle: self.outcomes.append((outcome, handle))  # noqa: E731  it is one line
        self.driver = Driver("judge", {"ask": self.work}, self.open_calls.append, emit)

    def start(self, *items: Sequence[Sequence[Call]], size: int = 0) -> None:
        first = self.driver.open
        self.driver.start([task(f"q{first + place}", item) for place, item in enumerate(items)], size)

    def settle(self, number: int, answer: str) -> None:
        open_call = self.open_calls[number]
        self.driver.settle(open_call, open_call.read(Reply(answer)))

    def values(self) -> dict[str, Any]:
        return {outcome.name: outcome.value for outcome, _ in self.outcomes if isinstance(outcome, CallAnswer)}


def task(name: str, item: Any) -> Task:
    number = int(name[1:])
    return Task(name, "ask", item, (Subject("p", name, 0, (number,)), Subject("p", f"{name} again", 0, (9,))))


def call(key: str | None, depth: SearchDepth | None = None, positions: frozenset[int] | None = None) -> Call:
    return Call("service", key, f"payload of {key}", depth, positions)


def test_equal_calls_are_made_once_and_answer_every_task() -> None:
    driven = Driven()
    driven.start([[call("a"), call("b")]], [[call("b"), call("c")]])
    assert [open_call.call.key for open_call in driven.open_calls] == ["a", "b", "c"]
    for number, answer in ((1, "B"), (2, "C")):
        driven.settle(number, answer)
    assert (driven.values(), driven.driver.open) == ({"q1": ["B", "C"]}, 1)
    driven.settle(0, "A")
    assert driven.values() == {"q1": ["B", "C"], "q0": ["A", "B"]}
    assert driven.driver.open == 0


def test_calls_without_a_key_and_those_that_were_settled_are_made_again() -> None:
    driven = Driven()
    driven.start([[call(None)]], [[call(None)]], [[call("a")]])
    driven.settle(2, "A")
    driven.start([[call("a")]])
    assert [open_call.call.key for open_call in driven.open_calls] == [None, None, "a", "a"]


def test_a_call_is_answered_by_one_that_goes_as_far_and_by_no_other() -> None:
    driven = Driven()
    for depth in (SearchDepth(5), SearchDepth(3), SearchDepth(9), SearchDepth(7), None):
        driven.start([[call("a", depth)]])
    assert [open_call.call.depth for open_call in driven.open_calls] == [SearchDepth(5), SearchDepth(9), None]
    driven.settle(0, "five")  # the farther one goes on for the key
    driven.settle(1, "nine")
    assert driven.values() == {"q0": ["five"], "q1": ["five"], "q2": ["nine"], "q3": ["nine"]}


def test_a_call_is_for_the_positions_that_are_named_or_else_for_those_of_its_tasks() -> None:
    driven = Driven()
    driven.start([[call("a", None, frozenset({1}))]], [[call("a", None, frozenset({2}))]], [[call("a")], []])
    driven.start([[call("b")]], [[call("b")]])
    assert [open_call.positions() for open_call in driven.open_calls] == [frozenset({1, 2}), frozenset({3, 4, 9})]


def test_steps_follow_each_other_and_one_without_calls_is_passed_over() -> None:
    driven = Driven()
    driven.start([[], [call("a")], [], [call("b")]], [[]])
    assert driven.values() == {"q1": []}
    driven.settle(0, "A")
    assert [open_call.call.key for open_call in driven.open_calls] == ["a", "b"]
    driven.settle(1, "B")
    assert driven.values() == {"q1": [], "q0": ["B"]}


def test_a_task_that_fails_fails_for_each_of_its_subjects() -> None:
    driven = Driven()
    driven.start([[call("a")]])
    driven.settle(0, "bad")
    failures = [Failure("judge", FailureKind.BLOCKED, name, 2, "refused") for name in ("q0", "q0 again")]
    subjects = task("q0", None).subjects
    assert driven.outcomes == [
        (FailedTask("ask", subject, failure), 1200) for subject, failure in zip(subjects, failures, strict=True)
    ]
    assert (driven.driver.open, driven.driver.held_bytes) == (0, 0)


def test_a_task_that_joined_a_call_while_it_was_read_is_read_for_afterwards() -> None:
    driven = Driven()
    driven.start([[call("a")]])
    open_call = driven.open_calls[0]
    read = open_call.read(Reply("A"))
    driven.start([[call("a")]])
    driven.driver.settle(open_call, [*read, *open_call.read(Reply("A"), skip=len(read))])
    assert driven.values() == {"q0": ["A"], "q1": ["A"]}


def test_what_a_task_holds_is_its_texts_and_its_payloads() -> None:
    driven = Driven()
    payload = sys.getsizeof("payload of a")
    of_calls = [1200 + 3000 + 2 * payload + 2 * 800, 1200 + 3000 + payload + 800]
    driven.start([[call("a"), call("b")], [call("c")]], [[call("d")]], size=6000)
    assert driven.driver.held_bytes == sum(of_calls)
    driven.settle(0, "A")
    driven.settle(1, "B")
    assert driven.driver.held_bytes == 2 * of_calls[1]
    driven.settle(3, "C")
    assert (driven.driver.held_bytes, driven.outcomes[0][1]) == (of_calls[1], of_calls[1])
    uncalled = Driven()
    uncalled.start([[]], [[]], size=6000)
    assert [size for _, size in uncalled.outcomes] == [1200 + 3000] * 2
    small = Driven()
    small.start([[call("a")]])
    assert small.driver.held_bytes == 1200 + 2 * payload + 800


def test_a_task_that_needs_a_batch_job_ends_once_its_calls_have_ended_and_holds_nothing() -> None:
    driven = Driven()
    driven.start([[call("a"), call("b")], [call("c")]], [[call("d")]], size=6000)
    of_second = 1200 + 3000 + sys.getsizeof("payload of d") + 800
    driven.driver.settle(driven.open_calls[0], [BatchPending()])
    assert (driven.outcomes, driven.driver.open) == ([], 2)
    driven.settle(1, "B")
    failed = [outcome.failure for outcome, _ in driven.outcomes if isinstance(outcome, FailedTask)]
    assert {failure.message for failure in failed} == {"waits for a batch job"}
    assert [failure.query_id for failure in failed] == ["q0", "q0 again"]
    assert (driven.driver.open, driven.driver.held_bytes) == (1, of_second)
    assert list(map(inspect.getgeneratorstate, driven.work.begun)) == [inspect.GEN_CLOSED, inspect.GEN_SUSPENDED]
    assert [open_call.call.key for open_call in driven.open_calls] == ["a", "b", "d"]
