"""Work of the process that submits a pipeline, before the pipeline begins.

Pace, retries, ledger and lease are those of all other calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rankbeam.transforms.clients.calls.fanout import FanOut
from rankbeam.transforms.clients.calls.feed import Feed
from rankbeam.transforms.clients.calls.lanes import Lane
from rankbeam.transforms.clients.calls.services import Service
from rankbeam.transforms.clients.calls.stage import Stage
from rankbeam.transforms.clients.calls.task_batches import batches_of, rows_in
from rankbeam.transforms.clients.clock import SYSTEM_CLOCK, Clock
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.records.calls.outcomes import CallAnswer, Usage
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Subject, Task, Work
from rankbeam.transforms.records.errors import CallError


@dataclass
class Alone:
    """One service that a process calls by itself."""

    service: Service
    account: str
    quota: Quota
    ledger: Ledger
    clock: Clock = SYSTEM_CLOCK
    usage: list[Usage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def done(self, work: Work[Any], items: Sequence[Any]) -> list[Any]:
        name, (pool,) = work.stage, work.services
        tasks = [
            Task(f"{number}", name, item, (Subject(name, f"{number}", 0, ()),)) for number, item in enumerate(items)
        ]
        stage = Stage(name, {name: work}, {pool: self.service}, {pool: pool}, {pool: self.quota}, {pool: self.account})
        fan_out = FanOut(stage, self.ledger, self.clock)
        if tasks:
            fan_out.begin(Lane((pool,), 0), Feed(rows_in(batches_of(tasks)), len(tasks)))
        values: list[Any] = [None] * len(tasks)
        for outcome in fan_out.outcomes():
            if isinstance(outcome, CallAnswer):
                values[int(outcome.name)] = outcome.value
            elif outcome is not None:
                failure = outcome.failure
                values[int(failure.query_id)] = CallError(failure.kind, failure.message, failure.attempts)
        self.usage += fan_out.usage()
        self.warnings += fan_out.warnings()
        return values

    def one(self, work: Work[Any], item: Any) -> Any:
        (value,) = self.done(work, [item])
        if isinstance(value, CallError):
            raise value
        return value
