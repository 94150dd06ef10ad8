"""A service in this process, for what the fan-out does whatever the service is: scripts say what every call meets."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.feed import Feed
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import batches_of, distinct, rows_in
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.storage.batches import Reference
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import Quota
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
from rankbeam.transforms.records.content_keys import content_key
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.reply import Reply, Tokens

Script = Callable[[str, int], Awaitable[str | None]]
"""The answer to a question by the number of times it was sent, from 1; None for the usual answer."""

NEAR = SearchDepth(10)
FAST = Quota(requests_per_minute=60_000)


class WorkerGone(BaseException):
    """Ends a lane at once, as a worker does that goes away; an `Exception` would fail one call."""


@dataclass
class Echo:
    """Answers every question with itself, after what its script has done.

    Attributes:
        script: action before a call is answered.
        reader: function that parses an answer.
        begun: question and start time of every call.
    """

    script: Script | None = None
    reader: Callable[[Any], Any] = lambda answer: answer
    begun: list[tuple[str, float]] = field(default_factory=list)
    open: int = 0
    most_open: int = 0

    async def connect(self) -> "Echo":
        return self

    async def close(self) -> None:
        """Nothing is open."""

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  the Protocol's
        question = json.loads(payload)["query"]
        self.begun.append((question, asyncio.get_running_loop().time()))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            times = sum(earlier == question for earlier, _ in self.begun)
            reply = None if self.script is None else await self.script(question, times)
            return Reply(payload if reply is None else reply)
        finally:
            self.open -= 1

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  the Protocol's
        return Tokens()

    def read(self, answer: str) -> Any:
        try:
            return self.reader(json.loads(answer))
        except ValueError as error:
            raise CallError(FailureKind.MALFORMED, f"no JSON: {answer}") from error


@dataclass(frozen=True)
class Ask:
    """Work of one call: an item is the call.

    Attributes:
        service: the service to call.
        reader: function that parses an answer.
    """

    service: str
    reader: Echo

    stage: ClassVar[str] = "retrieve"

    @property
    def services(self) -> tuple[str]:
        return (self.service,)

    def steps(self, item: Call) -> Steps[Any]:
        (value,) = results_or_raise((yield [item]))
        return value

    def read(self, call: Call, reply: Reply) -> Any:  # noqa: ARG002  the Protocol's
        return self.reader.read(reply.answer)


def task(question: str, query_id: str = "", depth: SearchDepth = NEAR, service: str = "echo") -> Task:
    """A task that asks a question; the key of its call is the question's alone."""
    payload = json.dumps({"query": question, "top_k": depth.results, "distance": depth.distance})
    key = content_key({"query": question})
    subject = Subject("retrieval", query_id or question, 0, (0,))
    return Task(key, service, Call(service, key, payload, depth), (subject,))


def stage(services: Mapping[str, Echo], quota: Quota = FAST) -> Stage:
    """A stage whose services share one pool, with a work for each of them."""
    works = {name: Ask(name, service) for name, service in services.items()}
    return Stage("retrieve", works, services, dict.fromkeys(services, "pool"), {"pool": quota}, {})


def feed(tasks: Sequence[Task]) -> Feed:
    """Tasks as a lane gets them: one row a name, in their order."""
    batches = list(distinct(list(map(Reference.to, batches_of(tasks)))))
    return Feed(rows_in(batches), sum(batch.num_rows for batch in batches))


def make(
    tasks: Iterable[Task], service: Echo, folder: Path, quota: Quota = FAST, clock: VirtualClock | None = None
) -> list[CallAnswer | FailedTask]:
    """The outcomes of tasks in one lane."""
    return run_all({"echo": service}, [list(tasks)], folder, quota, clock)[0]


def run_all(
    services: Mapping[str, Echo],
    lanes: list[list[Task]],
    folder: Path,
    quota: Quota = FAST,
    clock: VirtualClock | None = None,
) -> tuple[list[CallAnswer | FailedTask], FanOut]:
    """The outcomes of tasks in several lanes of one pool, and the fan-out that ran them, on a virtual clock."""
    with VirtualClock() if clock is None else nullcontext(clock) as virtual:
        fan_out = FanOut(stage(services, replace(quota, lanes=len(lanes))), Ledger(str(folder)), virtual)
        for number, tasks in enumerate(lanes):
            fan_out.begin(("pool",), number, feed(tasks))
        outcomes = [outcome for outcome in fan_out.outcomes() if outcome is not None]
    return outcomes, fan_out


def subjects(outcome: CallAnswer | FailedTask) -> list[str]:
    """The ids of the queries that an outcome is of."""
    return [
        subject.query_id for subject in (outcome.subjects if isinstance(outcome, CallAnswer) else (outcome.subject,))
    ]


def failing(kind: FailureKind, times: int, retry_after_s: float | None = None) -> Script:
    """A script by which the first calls of every question fail."""

    async def script(_: str, time: int) -> str | None:
        await asyncio.sleep(0)
        if time <= times:
            raise CallError(kind, f"{kind} on purpose", retry_after_s=retry_after_s)
        return None

    return script


def taking(seconds: float) -> Script:
    """A script by which every call takes some time."""

    async def script(_: str, __: int) -> str | None:
        await asyncio.sleep(seconds)
        return None

    return script
