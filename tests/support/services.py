"""A service in this process, for what the fan-out does whatever the service is: scripts say what every call meets."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.lanes import Lane
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.records.calls.call import Answer, Call, FailedCall, content_key
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.reach import Reach
from rankbeam.transforms.records.calls.reply import Reply
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

Script = Callable[[str, int], Awaitable[str | None]]
"""What happens to a question that is asked for the n-th time (from 1); None is answered as usual."""

NEAR = Reach(10)
FAST = Quota(requests_per_minute=60_000)


@dataclass
class Echo:
    """Answers every question with itself, after what its script has done.

    Attributes:
        script: what happens to a call before it is answered.
        reader: what `read` makes of an answer.
        begun: of every call, the question and when it began.
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
        self.begun.append((question, time.monotonic()))
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            times = sum(asked == question for asked, _ in self.begun)
            said = None if self.script is None else await self.script(question, times)
            return Reply(payload if said is None else said)
        finally:
            self.open -= 1

    def most_tokens(self, payload: str) -> int:  # noqa: ARG002  the Protocol's
        return 0

    def read(self, answer: str) -> Any:
        try:
            return self.reader(json.loads(answer))
        except ValueError as error:
            raise CallError(FailureKind.MALFORMED, f"no JSON: {answer}") from error


def call(question: str, query_id: str = "", reach: Reach = NEAR, service: int = 0, pool: str = "pool") -> Call:
    """A call that asks a question; its key is the question's alone."""
    payload = json.dumps({"query": question, "top_k": reach.results, "distance": reach.distance})
    return Call(pool, service, content_key({"query": question}), reach, payload, ((0, query_id or question),))


def make(calls: Iterable[Call], service: Echo, folder: Path, quota: Quota = FAST) -> list[Answer | FailedCall]:
    """What comes of calls in one lane."""
    return made({0: service}, [list(calls)], folder, quota)[0]


def made(
    services: dict[int, Echo], lanes: list[list[Call]], folder: Path, quota: Quota = FAST
) -> tuple[list[Answer | FailedCall], FanOut]:
    """What comes of calls in several lanes of one pool, and the fan-out that made them."""
    fan_out = FanOut(services, Ledger(str(folder)))
    for number, calls in enumerate(lanes):
        fan_out.begin(Lane("pool", replace(quota, lanes=len(lanes)), number, calls, "retrieve"))
    outcomes = [outcome for outcome in fan_out.outcomes() if outcome is not None]
    return outcomes, fan_out


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
