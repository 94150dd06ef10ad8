"""Remote work as tasks made of steps: a generator yields calls and is sent their outcomes.

    def steps(self, item: Pair) -> Steps[float]:
        claims = results_or_raise((yield [self.call("claims", item)]))
        verdicts = results_or_raise((yield [self.call("support", claim) for claim in claims[0]]))
        return sum(verdicts) / len(verdicts)

A work knows no clock, no quota and no Beam: it is tested by sending it values. Tasks end in answers or failures, and
their calls in usage, which has a cost.
"""

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from rankbeam.transforms.kernels.durations import percentile
from rankbeam.transforms.records.errors import CallError, Failure, FailureKind, pluralize
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens


@dataclass(frozen=True)
class SearchDepth:
    """The depth of a call into a ranking. An answer of a larger depth also answers calls of smaller depths."""

    results: int
    distance: float | None = None  # only results nearer than this; None for all

    def covers(self, other: "SearchDepth") -> bool:
        """Return whether an answer of this depth contains all results of the other depth.

        >>> SearchDepth(100, None).covers(SearchDepth(10, 0.5)), SearchDepth(100, 0.5).covers(SearchDepth(10, None))
        (True, False)
        """
        near = other.distance is not None and self.distance is not None and other.distance <= self.distance
        return self.results >= other.results and (self.distance is None or near)

    def joined(self, other: "SearchDepth") -> "SearchDepth":
        """The smallest depth that covers both.

        >>> SearchDepth(10, None).joined(SearchDepth(100, 0.5))
        SearchDepth(results=100, distance=None)
        """
        distance = None if self.distance is None or other.distance is None else max(self.distance, other.distance)
        return SearchDepth(max(self.results, other.results), distance)


@dataclass(frozen=True)
class Call:
    """One request to a remote service."""

    service: str
    key: str | None
    payload: str
    depth: SearchDepth | None = None  # None if an answer is whole
    positions: frozenset[int] | None = None  # None for the positions of the call's task
    keeps_malformed: bool = False
    step: str = ""


PAUSE = "pause"  # the service of pauses; no quota pool pays for them
Value = TypeVar("Value")
Item = TypeVar("Item", contravariant=True)
Steps = Generator[Sequence[Call], Sequence[Any], Value]
"""Yields the calls of a step; is sent, for each call, what `Work.read` returned, or its final CallError."""


def pause(seconds: float) -> Call:
    """A call that ends after some time; a step that yields it is sent None for it.

    >>> pause(2.5).payload
    '2.5'
    """
    return Call(PAUSE, None, f"{seconds:g}")


class Subject(NamedTuple):
    """The query and configurations that the value of a task belongs to."""

    panel: str
    query_id: str
    bucket: int
    positions: tuple[int, ...]


class Task(NamedTuple):
    """One unit of remote work."""

    name: str
    work: str
    item: Any
    subjects: tuple[Subject, ...]


class Work(Protocol[Item]):
    """A kind of task, as a value that travels to workers: retrieve for a query, answer it, judge an answer."""

    @property
    def stage(self) -> str:
        """The name of its stage, such as "retrieve"."""
        ...

    @property
    def services(self) -> Sequence[str]:
        """The names of all services that its calls may go to, in the order of the steps."""
        ...

    def steps(self, item: Item) -> Steps[Any]:
        """Yield the calls that a task needs, step by step, and return its value.

        The generator is deterministic: it depends only on the item and on the values sent to it.
        """
        ...

    def read(self, call: Call, reply: Reply) -> Any:
        """Read a reply as the service does, and check it against the call."""
        ...


@dataclass(frozen=True)
class ServiceWork:
    """Base of works whose calls go to one service."""

    service: str

    @property
    def services(self) -> tuple[str]:
        return (self.service,)


@runtime_checkable
class OneCall(Protocol):
    """A work of one call, whose key is the name of the task, so that ledger answers are read in batches.

    Its `steps` return what `recall` returns for the same answer.
    """

    @property
    def service(self) -> str: ...

    @property
    def depth(self) -> SearchDepth | None:
        """The depth into a ranking; None if an answer is always whole."""
        ...

    def recall(self, answers: Sequence[bytes]) -> pa.Array:
        """The values of many tasks, from the ledger's JSON; null for a task that has to take its steps."""
        ...

    def warning(self, answers: Sequence[bytes]) -> str | None:
        """A warning about these answers, for users."""
        ...


def results_or_raise(outcomes: Sequence[Any]) -> Sequence[Any]:
    """The values that a step was sent, for work that needs all of them."""
    for outcome in outcomes:
        if isinstance(outcome, CallError):
            raise outcome
    return outcomes


def unless_blocked(outcome: Any) -> Any:
    """The value that a step was sent for a call; None if the model refused to answer."""
    if isinstance(outcome, CallError):
        if outcome.kind is not FailureKind.BLOCKED:
            raise outcome
        return None
    return outcome


def together(parts: Sequence[Steps[Value]]) -> Steps[list[Value]]:
    """Take several generators through their steps side by side: their calls in one step are one list."""
    values: dict[int, Value] = {}
    calls: dict[int, Sequence[Call]] = {}
    sent: dict[int, Sequence[Any] | None] = dict.fromkeys(range(len(parts)))
    while sent:
        calls = {}
        for place, outcomes in sent.items():
            try:
                calls[place] = next(parts[place]) if outcomes is None else parts[place].send(outcomes)
            except StopIteration as end:
                values[place] = end.value
        together = yield [call for part_calls in calls.values() for call in part_calls] if calls else ()
        replies = iter(together)
        sent = {place: [next(replies) for _ in part_calls] for place, part_calls in calls.items()}
    return [values[place] for place in range(len(parts))]


def without_calls(steps: Steps[Value]) -> Value:
    """The value of a task whose steps have no calls."""
    try:
        calls = next(steps)
        while not calls:
            calls = steps.send(())
    except StopIteration as end:
        value: Value = end.value
        return value
    raise ValueError(f"the task makes {len(calls)} calls")


OVER_BUDGET = "max_cost: "  # prefix of the warning of a run that stopped making calls because of their cost


def over_budget(pools: Sequence[str], calls: int) -> str:
    """The warning of lanes that did not make some calls.

    >>> over_budget(["gemini"], 1200)  # doctest: +ELLIPSIS
    'max_cost: 1,200 calls of gemini were not made, because they might have cost more than was left; ...'
    """
    were, they = ("was", "it") if calls == 1 else ("were", "they")
    return (
        f"{OVER_BUDGET}{pluralize(calls, 'call')} of {', '.join(pools)} {were} not made, because {they} might have "
        "cost more than was left; nothing is lost, and the next run continues from here"
    )


@dataclass(frozen=True)
class CallAnswer:
    """A task that returned a value."""

    work: str
    name: str
    subjects: tuple[Subject, ...]
    value: Any


@dataclass(frozen=True)
class RecalledTasks:
    """Tasks of one work whose answers the ledger had."""

    subjects: Sequence[Subject]
    tasks: Sequence[int]
    values: pa.Array


@dataclass(frozen=True)
class FailedTask:
    """A task that returned no value: one element for each of its subjects."""

    work: str
    subject: Subject
    failure: Failure


@dataclass(frozen=True)
class CallUsage:
    """Usage of one quota pool and model, by calls that were made, or by calls that the ledger answered."""

    position: int | None = None  # None for all calls
    calls: int = 0
    shared: int = 0
    tokens: Tokens = NO_TOKENS
    durations: Mapping[int, int] = field(default_factory=dict)
    hits: int = 0  # answers of the ledger, which once took `calls`

    def __add__(self, other: "CallUsage") -> "CallUsage":
        """The sum, at the first one's position."""
        return CallUsage(
            self.position,
            self.calls + other.calls,
            self.shared + other.shared,
            self.tokens + other.tokens,
            dict(Counter(self.durations) + Counter(other.durations)),  # `asdict` cannot make a Counter
            self.hits + other.hits,
        )

    def percentile_s(self, percent: int) -> float | None:
        """A percentile of the durations, in seconds; None if no call was answered."""
        return percentile(self.durations, percent)


@dataclass(frozen=True)
class Usage:
    """The use of a quota pool by a stage."""

    pool: str
    calls: int
    ledger_hits: int
    records: tuple[str, ...] = ()
    stage: str = ""
    model: str | None = None  # the model that was called; None for services that are not models
    tokens: Tokens = NO_TOKENS  # tokens of all attempts, failed ones included
    took: tuple[CallUsage, ...] = ()  # by position; a stored name
    recalled: tuple[CallUsage, ...] = ()  # by position; what calls that the ledger answered once used


def sum_by_position(usages: Iterable[CallUsage]) -> tuple[CallUsage, ...]:
    """The usage of calls, added up by position."""
    sums: dict[int | None, CallUsage] = {}
    for item in usages:
        sums[item.position] = sums[item.position] + item if item.position in sums else item
    return tuple(sums.values())


def without_paid(recalled: Iterable[CallUsage], paid: Iterable[CallUsage]) -> tuple[CallUsage, ...]:
    """Answers of the ledger, without those that the same run had paid for, at their positions.

    >>> recalled = [CallUsage(0, 5, 0, Tokens(50), hits=4), CallUsage(1, 5, hits=5)]
    >>> [rest] = without_paid(recalled, [CallUsage(0, 2, 0, Tokens(20), hits=2), CallUsage(1, 7, hits=6)])
    >>> rest.position, rest.calls, rest.tokens, rest.hits
    (0, 3, Tokens(input=30, cached=0, output=0), 2)
    """
    own = {item.position: item for item in sum_by_position(paid)}
    left = []
    for item in recalled:
        other = own.get(item.position, CallUsage())
        calls, hits = max(0, item.calls - other.calls), max(0, item.hits - other.hits)
        left.append(replace(item, calls=calls, tokens=item.tokens.less(other.tokens), hits=hits))
    return tuple(item for item in left if item.hits)


def usages_by_position(usages: Iterable[CallUsage], needed_by: Mapping[int, Collection[int]]) -> dict[int, CallUsage]:
    totals: dict[int, CallUsage] = {}
    for item in usages:
        users = () if item.position is None else needed_by.get(item.position, ())
        for user in users:
            usage = replace(item, position=user, shared=item.calls if len(users) > 1 else item.shared)
            totals[user] = totals[user] + usage if user in totals else usage
    return totals
