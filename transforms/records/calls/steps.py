"""Remote work as tasks made of steps: a generator yields calls and is sent what became of them.

    def steps(self, item: Pair) -> Steps[float]:
        claims = accepted((yield [self.call("claims", item)]))
        verdicts = accepted((yield [self.call("support", claim) for claim in claims[0]]))
        return sum(verdicts) / len(verdicts)

A work knows no clock, no quota and no Beam: it is tested by sending it values.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from rankbeam.transforms.records.calls.call import Call
from rankbeam.transforms.records.calls.reply import Reply
from rankbeam.transforms.records.errors import CallError

Value = TypeVar("Value")
Item = TypeVar("Item", contravariant=True)

Steps = Generator[Sequence[Call], Sequence[Any], Value]
"""Yields the calls of a step; is sent, for each of them, what `Work.read` returned, or the CallError that is final."""


@dataclass(frozen=True)
class Subject:
    """What the value of a task belongs to.

    Attributes:
        panel: the group of metrics that shares its status: "retrieval", or a judged metric.
        query_id: the query.
        bucket: of the query.
        positions: of the sources that want the value, or, outside of retrieval, of the configurations.
    """

    panel: str
    query_id: str
    bucket: int
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """One unit of remote work.

    Attributes:
        name: the content of what it works on: tasks of one work with one name are done once.
        work: the name of its work, among those of the stage.
        item: what the work's `steps` are given; a reference where the content is long.
        subjects: all that the value belongs to.
    """

    name: str
    work: str
    item: Any
    subjects: tuple[Subject, ...]


class Work(Protocol[Item]):
    """A kind of task, as a value that travels to workers: retrieve for a query, answer it, judge an answer."""

    @property
    def stage(self) -> str:
        """The stage that it belongs to, such as "retrieve"."""
        ...

    @property
    def services(self) -> Sequence[str]:
        """The names of all services that its calls may name, the first step's first."""
        ...

    def steps(self, item: Item) -> Steps[Any]:
        """The calls that a task needs, step by step, and the value that comes of them.

        It is deterministic: what it yields depends on the item and on what it was sent.

        Raises:
            CallError: the task has no value; that is a failure of all its subjects.
        """
        ...

    def read(self, call: Call, reply: Reply) -> Any:
        """What a reply says: as the service reads it, and as this work checks it against what was asked.

        Raises:
            CallError: as `Service.read`.
        """
        ...

    def calls(self, item: Item) -> range:
        """How many calls a task makes: the least, and one more than the most."""
        ...


def accepted(outcomes: Sequence[Any]) -> Sequence[Any]:
    """What a step was sent, for work that cannot do without any of it.

    Raises:
        CallError: the first of those that were sent.
    """
    for outcome in outcomes:
        if isinstance(outcome, CallError):
            raise outcome
    return outcomes
